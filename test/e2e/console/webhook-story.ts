/**
 * The part of the console's story about webhooks, signatures, erasures and settings of a tenant.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { replicationLock } from '#shared/io/analytics/replication-store.ts'
import type { Erasure } from '#shared/io/erasure/erasure-job-store.ts'
import { withNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import {
  admin,
  createTenant,
  ingest,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** The results of earlier tests: a signed-in administrator. */
export type WebhookStory = { running: TestStack; page: Page; password: string }

type Delivery = {
  delivery_id: string
  alert_id: string | null
  event: string
  state: string
  attempts: { status: number | null }[]
}

/** While this lock is taken, erasures wait halfway: alerts are erased and the rest is not. */
async function holdErasures(postgresUrl: string): Promise<() => Promise<void>> {
  const postgres = createPostgres(postgresUrl, { role: 'test', log: createLog('test', 'silent') })
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const locks = { holders: postgres, work: postgres }
  const holding = withNamedLock(locks, replicationLock, async () => {
    begin()
    await released
  })
  await begun
  return async () => {
    release()
    await holding
    await postgres.close()
  }
}

export function describeWebhooks(getStory: () => WebhookStory): void {
  const slug = 'hooks'
  let tenant: Tenant
  let receiver: Receiver
  /** The page on which an erasure runs. */
  let erasing: Page
  let forgetful: Tenant
  const stack = () => getStory().running.stack
  const button = (name: string) => getStory().page.getByRole('button', { name, exact: true })
  const inDialog = (name: string) =>
    getStory().page.getByRole('dialog').getByRole('button', { name, exact: true })
  const read = <T>(path: string) => admin<T>(stack(), 'GET', `/tenants/${slug}${path}`)
  const deliveries = async () => (await read<{ data: Delivery[] }>('/deliveries')).data

  beforeAll(async () => {
    receiver = await startReceiver((response) => response.writeHead(410).end('no longer here'))
    tenant = await createTenant(stack(), slug, receiver.url)
  })
  afterAll(() => receiver?.close())

  async function expectNoFault(page = getStory().page): Promise<void> {
    expect(await findViolations(page)).toEqual([])
    expect(await findOverflow(page)).toBe(0)
  }
  const erasures = async () =>
    (await admin<{ data: Erasure[] }>(stack(), 'GET', '/tenants/forgetful/erasures')).data

  describe('an erasure', () => {
    it('begins once the id is typed, and continues while other pages are open', async () => {
      const { page, password } = getStory()
      forgetful = await createTenant(stack(), 'forgetful')
      const body = toBody('forgetful', { device: 'test-block' })
      await until('the edge knows the tenant', async () => {
        return (await ingest(stack(), forgetful.hmac_secret, body)).status === 200
      })
      erasing = await page.context().newPage()
      const of = (name: string) =>
        erasing.getByRole('dialog').getByRole('button', { name, exact: true })
      await erasing.goto('/manage/erasure?tenant=forgetful')
      await erasing.getByLabel('Device id').fill('test-block')
      expect(await findViolations(erasing)).toEqual([])
      expect(await findOverflow(erasing)).toBe(0)
      await erasing.getByRole('button', { name: 'Erase', exact: true }).click()
      await erasing.getByLabel('Type test-block to confirm').fill('test-bloc')
      expect(await of('Erase').isDisabled()).toBe(true)
      await erasing.getByLabel('Type test-block to confirm').fill('test-block')
      // The erasure waits halfway until the test has seen it there.
      const release = await holdErasures(stack().postgres)
      try {
        await of('Erase').click()
        const progress = erasing.getByRole('heading', { name: 'Progress' })
        await erasing
          .getByRole('heading', { name: 'Confirm that it is you' })
          .or(progress)
          .waitFor()
        if (await of('Confirm').isVisible()) {
          await erasing.getByLabel('Password').fill(password)
          await of('Confirm').click()
        }
        await progress.waitFor()
        expect(new URL(erasing.url()).searchParams.get('id')).toBe(null)
        const ofPostgres = erasing.getByRole('listitem').filter({ hasText: 'Postgres' })
        await ofPostgres.getByText('erased', { exact: true }).waitFor()
        await expectNoFault(erasing)
        const [running] = await erasures()
        expect(running).toMatchObject({ state: 'running', receipt: null })
        expect(running!.progress[0]).toMatchObject({ store: 'postgres', state: 'erased' })

        // It continues without the page, and is listed when the operator returns.
        await erasing.goto('/help')
        await erasing.goto('/manage/erasure?tenant=forgetful')
        await progress.waitFor()
        await ofPostgres.getByText('erased', { exact: true }).waitFor()
      } finally {
        await release()
      }
      await erasing.goto('/help')
    }, 60_000)
  })

  describe('a webhook', () => {
    it('whose receiver is gone is off; failed deliveries are replayed', async () => {
      const { page } = getStory()
      const body = toBody(slug, { device: 'test-block' })
      await until('the edge knows the tenant', async () => {
        return (await ingest(stack(), tenant.hmac_secret, body)).status === 200
      })
      await page.goto(`/t/${slug}/webhooks`)
      await page.getByText('the receiver answered 410 Gone').waitFor()
      await page.getByRole('row').nth(1).getByRole('button').click()
      const request = page.getByRole('region', { name: 'Request of attempt 1' })
      const [failed] = await deliveries()
      expect(failed).toMatchObject({ state: 'failed', attempts: [{ status: 410 }] })
      await request.getByText(failed!.alert_id!).waitFor()
      const response = page.getByRole('region', { name: 'Response to attempt 1' })
      expect(await response.textContent()).toContain('no longer here')
      expect(new URL(page.url()).searchParams.get('delivery')).toBe(failed!.delivery_id)
      await expectNoFault()

      receiver.setAnswer((answer) => answer.writeHead(204).end())
      await button('Resume').click()
      await button('Pause').waitFor()
      await button('Replay deliveries').click()
      await page.getByRole('dialog').getByText('1 delivery', { exact: true }).waitFor()
      expect(await findViolations(page)).toEqual([])
      await inDialog('Replay 1').click()
      await page.getByText('1 delivery is sent again now.').waitFor()
      await inDialog('Done').click()
      await page.getByText('Attempt 2').waitFor()
      await page.getByRole('cell', { name: 'delivered' }).waitFor()
      expect(await deliveries()).toMatchObject([
        { delivery_id: failed!.delivery_id, state: 'delivered', attempts: [{}, { status: 204 }] },
      ])
      expect(receiver.requests[1]!.body.equals(receiver.requests[0]!.body)).toBe(true)

      await button('Replay').click()
      await page.getByText('Attempt 3').waitFor()
      expect(receiver.requests).toHaveLength(3)
    })

    it('is tested, paused and changed; rejections are shown at their field', async () => {
      const { page } = getStory()
      // While the receiver waits, everything says that it is being sent; then, that it is not.
      const { promise: answering, resolve: answerNow } = Promise.withResolvers<void>()
      receiver.setAnswer((answer) => void answering.then(() => answer.writeHead(503).end()))
      const row = page.getByRole('row').filter({ hasText: 'webhook.test' }).first()
      const said = page.getByRole('status').filter({ hasText: 'The test event' })
      const states = async () => [
        (await said.textContent())?.split('The')[0],
        await row.getByRole('cell').first().textContent(),
        await page
          .locator('dd')
          .filter({ hasText: /^(sending|pending|failed)/ })
          .textContent(),
      ]
      await button('Send a test event').click()
      await row.waitFor()
      expect(await states()).toEqual(['sending', 'sending', 'sending'])
      answerNow()
      await said.getByText('was not delivered: the receiver answered 503.').waitFor()
      await row.getByText('failed', { exact: true }).waitFor()
      receiver.setAnswer((answer) => answer.writeHead(204).end())
      await button('Send a test event').click()
      await said.getByText('was delivered: the receiver answered 204.').waitFor()
      await until('it is delivered', async () => {
        const sent = (await deliveries()).find(({ event }) => event === 'webhook.test')
        return sent?.state === 'delivered'
      })
      await button('Pause').click()
      await button('Resume').waitFor()
      expect(await read('')).toMatchObject({ webhook_state: 'paused' })
      await button('Change the URL').click()
      await page.getByLabel('Webhook URL').fill('http://someone@127.0.0.1:9000/hook')
      await button('Save').click()
      await page.getByText('it carries a user name or password').waitFor()
      expect(await read('')).toMatchObject({ webhook_url: receiver.url })
      await page.getByLabel('Webhook URL').fill(`${receiver.url}/moved`)
      await button('Save').click()
      await button('Change the URL').waitFor()
      expect(await read('')).toMatchObject({
        webhook_url: `${receiver.url}/moved`,
        webhook_state: 'on',
      })
      await page.getByRole('tab', { name: 'Receiver in six languages' }).click()
      await page.getByRole('tab', { name: 'Go', exact: true }).click()
      const code = await page.getByRole('region', { name: 'Receiver in Go' }).textContent()
      expect(code).toContain('/moved')
      expect(code).not.toContain(tenant.webhook_secret)
      await expectNoFault()
    })
  })

  describe('the signature debugger', () => {
    it('explains what is wrong with a signature, and confirms a valid one', async () => {
      const { page } = getStory()
      const body = toBody(slug)
      const digest = createHmac('sha256', tenant.hmac_secret).update(body).digest()
      await page.goto(`/manage/integrations/${slug}`)
      await page.getByRole('link', { name: 'Signature debugger' }).click()
      await page.getByLabel('X-Service-Signature').fill(digest.toString('hex'))
      await page.getByLabel('Body', { exact: true }).fill(body)
      await button('Check').click()
      const wrong = page.getByRole('list', { name: 'What is wrong' }).getByRole('listitem')
      await wrong.getByText('The signature is in hex.').waitFor()
      expect(await wrong.count()).toBe(1)
      await expectNoFault()
      const answer = await fetch(`${stack().ingest}/v1/rasp/ingest`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-service-signature': digest.toString('hex'),
        },
        body,
      })
      const sha256 = createHash('sha256').update(body).digest('hex')
      expect(await answer.json()).toMatchObject({
        code: 'signature_invalid',
        signature_form: await page.getByText('; base64 of 32 bytes expected').textContent(),
        received: { bytes: body.length, sha256 },
      })
      await page.getByLabel('X-Service-Signature').fill(digest.toString('base64'))
      await button('Check').click()
      await page.getByText('The edge accepts this submission.').waitFor()
      expect(await page.content()).not.toContain(tenant.hmac_secret)
    })
  })

  describe('Admin', () => {
    it('changes retention periods, and requires the slug where data may be removed', async () => {
      const { page } = getStory()
      await page.goto('/manage/retention')
      await page.getByRole('row').nth(1).waitFor()
      await expectNoFault()
      await page.goto(`/manage/retention?tenant=${slug}`)
      await page.getByLabel('Deliveries', { exact: true }).selectOption('days')
      await page.getByLabel('Days of deliveries').fill('14')
      expect(await inDialog('Save').isDisabled()).toBe(true)
      await page.getByLabel(`Type ${slug} to confirm`).fill(slug)
      expect(await findViolations(page)).toEqual([])
      await inDialog('Save').click()
      await page.getByRole('cell', { name: '14 days', exact: true }).waitFor()
      expect(await read('')).toMatchObject({
        retention: { deliveries: { days: 14, default: false }, events: { default: true } },
      })
    })

    it('creates an analyst, whose password is shown once, resets and removes it', async () => {
      const { page } = getStory()
      const list = async () => (await read<{ data: { name: string }[] }>('/analysts')).data
      await page.goto(`/manage/analysts?tenant=${slug}`)
      await page.getByText(`${slug} has no analyst`).waitFor()
      await expectNoFault()
      await button('Create an analyst').click()
      await inDialog('Create').click()
      await page.getByText('The password is shown only now.').waitFor()
      await page.getByText('This user has the views of one tenant and is no wall').waitFor()
      expect(await findViolations(page)).toEqual([])
      await button('I have kept it').click()
      await button('New password of analyst').click()
      await inDialog('Give a new password').click()
      await page.getByText('The password is shown only now.').waitFor()
      await button('I have kept it').click()
      await page.getByRole('cell', { name: 'analyst', exact: true }).waitFor()
      expect(await list()).toMatchObject([{ name: 'analyst' }])
      await button('Remove analyst').click()
      await inDialog('Remove').click()
      await page.getByText(`${slug} has no analyst`).waitFor()
      expect(await list()).toEqual([])
    })
  })

  describe('help', () => {
    it('explains signing and has both references, which the search finds by function', async () => {
      const { page } = getStory()
      await page.goto('/help')
      await page.getByText('Sign telemetry').waitFor()
      await expectNoFault()
      for (const [tab, find, path] of [
        ['Ingest and REST API', 'submit telemetry', '/v1/rasp/ingest'],
        ['Admin API', 'why a signature', '/admin/v1/tenants/{tenant_id}/signature-check'],
      ] as const) {
        await page.getByRole('tab', { name: tab }).click()
        await page.getByLabel('Find a call').fill(find)
        await page.getByText(path, { exact: true }).click()
        await expectNoFault()
      }
    })
  })

  describe('the receipt of an erasure', () => {
    it('counts the erased rows, and the API has no data of the device', async () => {
      const done = await until('it is done', async () => {
        const [erasure] = await erasures()
        return erasure?.state === 'done' ? erasure : null
      })
      await erasing.goto('/manage/erasure?tenant=forgetful')
      const list = erasing.getByRole('region', { name: 'Erasures of this tenant' })
      await list.getByRole('cell', { name: 'done' }).waitFor()
      await expectNoFault(erasing)
      await list.getByRole('cell', { name: 'device' }).click()
      const counts = erasing.getByRole('region', { name: 'What each store held' })
      await counts.waitFor()
      await expectNoFault(erasing)
      const rows = await counts.getByRole('row').allTextContents()
      const shown = Object.entries(done.receipt!.counts).map(
        ([store, { before, after }]) => `${store}${before}${after}`,
      )
      // The rows below the visible ones are drawn when they are scrolled to.
      const drawn = rows.slice(1).filter((text) => text !== '')
      expect(drawn).toEqual(shown.slice(0, drawn.length))
      expect(drawn.length).toBeGreaterThan(15)
      const table = counts.getByRole('table')
      expect(await table.getAttribute('aria-rowcount')).toBe(String(shown.length + 1))
      expect(done.receipt!.counts['postgres.alerts']).toEqual({ before: 1, after: 0 })
      expect(new URL(erasing.url()).searchParams.get('erasure')).toBe(done.erasure_id)
      await expectNoFault(erasing)

      // A second erasure begins on the page of its device, which leads to this page.
      const body = toBody('forgetful', { device: 'test-review' })
      expect((await ingest(stack(), forgetful.hmac_secret, body)).status).toBe(200)
      await until('the device is there', async () => {
        await erasing.goto('/t/forgetful/devices/test-review')
        await erasing.getByRole('button', { name: 'Erase this device' }).waitFor({ timeout: 2_000 })
        return true
      })
      await erasing.getByRole('button', { name: 'Erase this device' }).click()
      await erasing.getByLabel('Type test-review to confirm').fill('test-review')
      await erasing.getByRole('dialog').getByRole('button', { name: 'Erase', exact: true }).click()
      await erasing.waitForURL(/manage\/erasure/)
      await counts.waitFor({ timeout: 60_000 })
      const [second] = await erasures()
      expect(new URL(erasing.url()).searchParams.get('erasure')).toBe(second!.erasure_id)
      expect(second!.receipt!.counts['clickhouse.devices']).toEqual({ before: 1, after: 0 })
      await erasing.close()
      const path = '/tenants/forgetful/deliveries'
      expect(await admin(stack(), 'GET', path)).toMatchObject({ data: [] })
      const { data } = await admin<{ data: { action: string }[] }>(
        stack(),
        'GET',
        '/tenants/forgetful/audit',
      )
      expect(data.map(({ action }) => action)).toContain('erasure.done')
    }, 90_000)
  })
}
