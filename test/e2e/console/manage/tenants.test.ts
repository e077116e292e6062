/** A tenant is created and its keys are rotated, each shown once; the audit log has all of it. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { findViolations } from '../../../support/console/accessibility.ts'
import { tellStory } from '../../../support/console/story.ts'
import { admin, ingest, type Tenant, toBody } from '../../../support/http/tenant-client.ts'
import { runDi } from '../../../support/process/command-line.ts'
import { until } from '../../../support/process/until.ts'

const story = tellStory('founder')
const { button, expectNoFault, heading } = story
/** The credentials that the page showed. */
let acme: Tenant

/** The console's label of a secret: its last characters, without the padding of base64. */
const last4 = (secret: string) => secret.replace(/=+$/, '').slice(-4)

type Rotation = {
  state: string
  started_by: string
  started_at: string
  edges: { edge_id: string; old_off: object | null; new_on: object | null }[]
  new_keys: object | null
}
const readRotation = async () =>
  (await admin<{ rotation: Rotation }>(story.stack, 'GET', '/tenants/acme/rotation')).rotation

describe('a tenant', () => {
  it('creates a tenant and sees its keys once', async () => {
    const { page } = story
    await page.goto('/manage/tenants')
    await heading('Tenants').waitFor()
    await button('Create a tenant').click()
    await page.getByLabel('Slug').fill('Not A Slug')
    await button('Create').click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Slug').fill('acme')
    await page.getByLabel('Name').fill('Acme Bank')
    await button('Create').click()
    await heading('The keys of acme').waitFor()
    acme = {
      tenant_id: 'acme',
      public_api_key: await story.readValue('Public API key'),
      hmac_secret: await story.readValue('HMAC secret'),
      webhook_secret: await story.readValue('Webhook secret'),
    }
    expect(new Set(Object.values(acme)).size).toBe(4)
    expect(acme.public_api_key).toMatch(/^dpk_live_/)
    expect(await findViolations(page)).toEqual([])
    await button('I have saved them').click()
    await heading('acme').waitFor()
    expect(await page.content()).not.toContain(acme.hmac_secret)

    const body = toBody('acme')
    const answer = await until('the edge knows the tenant', async () => {
      const { status, body: answered } = await ingest(story.stack, acme.hmac_secret, body)
      return status === 200 ? answered : null
    })
    expect(answer).toMatchObject({ status: 'accepted' })
    expect(await admin(story.stack, 'GET', '/tenants/acme')).toMatchObject({
      name: 'Acme Bank',
      environment: 'live',
      hmac_secret: { last4: last4(acme.hmac_secret) },
    })
  })

  it('rotates keys while requests arrive, after typing the slug and the password', async () => {
    const { page, password } = story
    const statuses: number[] = []
    let sending = true
    const sender = (async () => {
      while (sending) {
        statuses.push((await ingest(story.stack, acme.hmac_secret, toBody('acme'))).status)
        await pause(10)
      }
    })()
    try {
      await page.getByRole('link', { name: 'Integrations' }).click()
      await page.getByRole('link', { name: 'acme', exact: true }).click()
      await button('Rotate keys').click()
      const rotate = page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' })
      await page.getByLabel('Type acme to confirm').fill('acm')
      expect(await rotate.isDisabled()).toBe(true)
      await page.getByLabel('Type acme to confirm').fill('acme')
      await until('requests arrive', () => statuses.at(-1) === 200)
      await rotate.click()
      await heading('Confirm that it is you').waitFor()
      await page.getByLabel('Password').fill('something else')
      await button('Confirm').click()
      await page.getByRole('alert').waitFor()
      await page.getByLabel('Password').fill(password)
      await button('Confirm').click()
      await heading('The new keys of acme').waitFor()
      await until('the old secret is refused', () => statuses.at(-1) === 401)
    } finally {
      sending = false
      await sender
    }
    expect(new Set(statuses)).toEqual(new Set([200, 401]))
    // Once rejected, the old secret is never accepted again.
    expect(statuses.lastIndexOf(200)).toBeLessThan(statuses.indexOf(401))
    const { edges } = await readRotation()
    expect(edges).toHaveLength(1)
    expect(edges[0]).toMatchObject({
      old_off: { outcome: 'confirmed' },
      new_on: { outcome: 'confirmed' },
    })
    const edge = page.getByRole('dialog').getByRole('row', { name: edges[0]!.edge_id })
    await edge.waitFor()
    expect(await edge.getByText('confirmed', { exact: true }).count()).toBe(2)
    await expectNoFault()

    const secret = await story.readValue('HMAC secret')
    expect(secret).not.toBe(acme.hmac_secret)
    expect((await ingest(story.stack, secret, toBody('acme'))).status).toBe(200)
    acme = { ...acme, hmac_secret: secret, webhook_secret: await story.readValue('Webhook secret') }
    await button('I have saved them').click()
    await heading('The new keys of acme').waitFor({ state: 'detached' })
    expect(await admin(story.stack, 'GET', '/tenants/acme')).toMatchObject({
      hmac_secret: { last4: last4(secret) },
      webhook_secret: { last4: last4(acme.webhook_secret) },
    })
    expect(await readRotation()).toMatchObject({ state: 'done', new_keys: null })
    await page.getByRole('region', { name: 'Refused requests by SDK version' }).waitFor()
    const stale = await admin<{ requests: number }>(
      story.stack,
      'GET',
      '/tenants/acme/stale-secret-requests',
    )
    expect(stale.requests).toBeGreaterThan(0)
  })

  it('finds the new keys of a rotation after the page was reloaded meanwhile', async () => {
    const { page } = story
    await button('Rotate keys').click()
    await page.getByLabel('Type acme to confirm').fill('acme')
    const { started_at: before } = await readRotation()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' }).click()
    // The browser drops a request of a page that is reloaded, if it has not sent all of it.
    await until('the rotation begins', async () => (await readRotation()).started_at !== before)
    await page.reload()
    await button('Show the new keys').waitFor()
    await page.getByText(/^done/).waitFor()
    expect(await readRotation()).toMatchObject({ state: 'done', started_by: story.email })
    await button('Show the new keys').click()
    await heading('The new keys of acme').waitFor()
    await button('Later').click()
    await button('Show the new keys').click()
    await heading('The new keys of acme').waitFor()
    const secret = await story.readValue('HMAC secret')
    expect((await ingest(story.stack, acme.hmac_secret, toBody('acme'))).status).toBe(401)
    expect((await ingest(story.stack, secret, toBody('acme'))).status).toBe(200)
    acme = { ...acme, hmac_secret: secret, webhook_secret: await story.readValue('Webhook secret') }
    await button('I have saved them').click()
    await heading('The new keys of acme').waitFor({ state: 'detached' })
    expect(await button('Show the new keys').count()).toBe(0)
    expect((await readRotation()).new_keys).toBeNull()
    expect(await page.content()).not.toContain(secret)
  })

  it('shows the rotation at the terminal too', async () => {
    const { stack } = story
    const env = { CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
    const { stdout } = await runDi(['tenants', 'rotation', 'acme'], env)
    expect(stdout).toMatch(/^state +done$/m)
    expect(stdout).toMatch(/ confirmed .* confirmed /)
  })

  it('finds each change in the audit log, with its previous and new values', async () => {
    const { page, email } = story
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByLabel('Log', { exact: true }).selectOption('acme')
    const created = page.getByRole('cell', { name: 'tenant.created' })
    await until('the log is that of one tenant', async () => (await created.count()) === 1)
    await created.click()
    await page.getByRole('region', { name: 'After', exact: true }).waitFor()
    expect(new URL(page.url()).searchParams.get('of')).toBe('acme')
    const { data } = await admin<{ data: { action: string; actor: string }[] }>(
      story.stack,
      'GET',
      '/tenants/acme/audit',
    )
    expect(data.map(({ actor }) => actor)).toEqual(data.map(() => email))
    expect(await page.getByRole('row').count()).toBe(data.length + 1)
    await page.reload()
    await page.getByRole('region', { name: 'After', exact: true }).waitFor()
  })
})
