/**
 * Allow and deny lists on a whole stack: from the command line and a key of the tenant to the
 * answer of the edge, the alert and the explanation; and the pages.
 */

import { beforeAll, describe, expect, it } from 'vitest'
import { findViolations } from '../support/console/accessibility.ts'
import { tellStory } from '../support/console/story.ts'
import {
  admin,
  createTenant,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../support/http/tenant-client.ts'
import { runDi } from '../support/process/command-line.ts'
import { until } from '../support/process/until.ts'

const story = tellStory('listed')
const { expectNoFault } = story
let other: Tenant

beforeAll(async () => {
  other = await createTenant(story.stack, 'unlisted')
})

/** Runs a command of the command line on the stack. */
async function di<T>(...args: string[]): Promise<T> {
  const { console: url, admin_token: token } = story.stack
  const env = { CONSOLE_URL: url, ADMIN_TOKEN: token }
  const { status, stdout, stderr } = await runDi([...args, '--json'], env)
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as T
}
const frida = { debugger: { frida_detected: true } }

let sessions = 0
async function submit(tenant: Tenant, more: Record<string, unknown>) {
  sessions++
  const body = toBody(tenant.tenant_id, { session: `s-${sessions}`, ...more })
  return (await ingest(story.stack, tenant.hmac_secret, body)).body as {
    event_id: string
    rasp_score: number
    rasp_action: string
    flags: string[]
  }
}

/** The next submission's answer, once it has the flag. */
const become = (tenant: Tenant, flag: string, more: Record<string, unknown>) =>
  until(`an answer with ${flag}`, async () => {
    const answer = await submit(tenant, more)
    return answer.flags.includes(flag) ? answer : null
  })

const alertsOf = async (deviceId: string) => {
  const { alerts } = await readAlerts(story.stack, story.tenant.public_api_key)
  return alerts.filter(({ entity }) => entity.device.device_id === deviceId)
}

type Explanation = {
  matches: boolean
  answered: { rasp_score: number; rasp_action: string }
  correlation: { risk_score: number; action: string; matches_alert: boolean | null }
}

/** The explanation, once the event and what it raised are stored. */
const explained = (eventId: string, isReady: (one: Explanation) => boolean) =>
  until('the explanation', async () => {
    const path = `/events/${eventId}/explanation`
    const found = await admin<Explanation>(story.stack, 'GET', path).catch(() => null)
    return found !== null && isReady(found) ? found : null
  })

describe('a denied device', () => {
  it('is BLOCK at once and raises an alert with the flag, until it is taken off', async () => {
    const added = await di<{ entry_id: string }>(
      ...['lists', 'add', 'listed', '--device', 'phone', '--deny', '--reason', 'chargeback'],
    )
    const answer = await become(story.tenant, 'DENY_LISTED', { device: 'phone' })
    expect(answer).toMatchObject({ rasp_score: 0, rasp_action: 'BLOCK', flags: ['DENY_LISTED'] })
    const alert = await until('the alert', async () => (await alertsOf('phone'))[0])
    expect(alert).toMatchObject({
      decision: { action: 'BLOCK', severity: 'CRITICAL', risk_score: 100 },
      rasp_score: 0,
      flags: ['DENY_LISTED'],
      reasons: [
        {
          code: 'DENY_LISTED',
          weight: 100,
          evidence: { entry_id: added.entry_id, kind: 'device', reason: 'chargeback' },
        },
      ],
    })
    expect((await submit(other, { device: 'phone' })).rasp_action).toBe('ALLOW')
    const why = await explained(answer.event_id, (one) => one.correlation.matches_alert !== null)
    expect(why).toMatchObject({
      matches: true,
      answered: { rasp_score: 0, rasp_action: 'BLOCK' },
      correlation: { risk_score: 100, action: 'BLOCK', matches_alert: true },
    })
    await di('lists', 'remove', 'listed', '--device', 'phone', '--deny')
    await until('it is allowed again', async () => {
      return (await submit(story.tenant, { device: 'phone' })).rasp_action === 'ALLOW'
    })
    expect(await di('lists', 'list', 'listed')).toMatchObject({ total: 0 })
  })
})

describe('an allowed user', () => {
  it('by a key of the tenant raises no alert, and deny beats it', async () => {
    const { api_key: key } = await di<{ api_key: string }>(
      ...['keys', 'create', 'listed', '--scope', 'lists:write', '--name', 'desk'],
    )
    const call = async (method: string, path: string, auth: string, body?: object) => {
      const response = await fetch(`${story.stack.api}/v1/di/lists${path}`, {
        method,
        headers: {
          authorization: `Bearer ${auth}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return {
        status: response.status,
        body: (await response.json()) as { entry_id: string; total: number },
      }
    }
    const entry = { list: 'allow', kind: 'user', id: 'ada', reason: 'test_phone' }
    const refused = await call('POST', '', story.tenant.public_api_key, entry)
    expect(refused).toMatchObject({ status: 403, body: { code: 'scope_missing' } })
    const added = await call('POST', '', key, entry)
    expect(added).toMatchObject({ status: 201, body: entry })
    expect(added.body).not.toHaveProperty('created_by')
    const more = { device: 'lab', user: 'ada', signals: frida }
    const answer = await become(story.tenant, 'ALLOW_LISTED', more)
    expect(answer).toMatchObject({ rasp_score: 80, rasp_action: 'ALLOW' })
    const why = await explained(answer.event_id, (one) => one.correlation !== null)
    expect(why).toMatchObject({
      matches: true,
      correlation: { risk_score: 0, action: 'ALLOW', matches_alert: null },
    })
    await call('POST', '', key, { ...entry, list: 'deny', reason: 'stolen' })
    expect(await become(story.tenant, 'DENY_LISTED', more)).toMatchObject({ rasp_action: 'BLOCK' })
    const [alert] = await until('the alert of the denied session', async () => {
      const found = await alertsOf('lab')
      return found.some(({ flags }) => flags.includes('DENY_LISTED')) ? found : null
    })
    // The sessions before, which were allowed or not yet listed, raised none of another kind.
    expect(alert!.flags).toContain('DENY_LISTED')
    const path = '/tenants/listed/alerts?flag=ALLOW_LISTED'
    expect(await admin<{ total: number }>(story.stack, 'GET', path)).toMatchObject({ total: 0 })
    expect((await call('GET', '?kind=user', story.tenant.public_api_key)).body.total).toBe(2)
    const removed = await call('DELETE', `/${added.body.entry_id}`, key)
    expect(removed).toMatchObject({ status: 200, body: { entry_id: added.body.entry_id } })
  })
})

describe('a connection', () => {
  it('is listed, found and taken off by the command line in any of its spellings', async () => {
    const entry = ['--deny', '--reason', 'abuse']
    const add = (...which: string[]) =>
      di<{ id: string }>('lists', 'add', 'listed', ...which, ...entry)
    expect(await add('--network', '::ffff:9.9.9.0/120')).toMatchObject({ id: '9.9.9.0/24' })
    expect(await add('--asn', 'AS64500')).toMatchObject({ id: '64500' })
    expect(await add('--country', 'de')).toMatchObject({ id: 'DE' })
    for (const which of [
      ['--network', '9.9.9.0/24'],
      ['--asn', '64500'],
    ]) {
      expect(await di('lists', 'list', 'listed', ...which)).toMatchObject({ total: 1 })
      await di('lists', 'remove', 'listed', ...which, '--deny')
      expect(await di('lists', 'list', 'listed', ...which)).toMatchObject({ total: 0 })
    }
    const refused = [
      [['--network', '0.0.0.0/0'], 'is too wide'],
      [['--network', '9.9.9.9/24'], 'the network with this prefix is 9.9.9.0/24'],
      [['--asn', '64500', '--country', 'DE'], 'Give one of --device ID'],
    ] as const
    for (const [which, says] of refused) {
      await expect(add(...which)).rejects.toThrow(says)
    }
  })
})

describe('the pages', () => {
  it('list the entries, add one for any id and from the page of a device, and label it', async () => {
    const { page, email } = story
    const entries = (query: string) =>
      admin<{ total: number; data: { id: string; reason: string; created_by: string }[] }>(
        story.stack,
        'GET',
        `/tenants/listed/lists?${query}`,
      )

    await page.goto('/t/listed/lists?state=active')
    await page.getByRole('button', { name: 'Add an entry' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Kind').selectOption('user')
    await dialog.getByLabel('Id').fill('mallory')
    await dialog.getByLabel('Reason').fill('Not A Code')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Reason').fill('chargeback')
    await expectNoFault()
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('link', { name: 'mallory' }).waitFor()
    expect(await entries('id=mallory')).toMatchObject({
      total: 1,
      data: [{ list: 'deny', kind: 'user', reason: 'chargeback', created_by: email }],
    })

    await page.getByRole('button', { name: 'Add an entry' }).click()
    // The stack has network data.
    await page.route('**/admin/v1/network', (route) =>
      route.fulfill({ json: { is_on: false, data: [] } }),
    )
    const off = dialog.getByText('NETWORK_DATA names no folder')
    expect(await off.count()).toBe(0)
    await dialog.getByLabel('Kind').selectOption('network')
    await off.waitFor()
    await dialog.getByLabel('Network').fill('8.8.8.8/24')
    await dialog.getByLabel('Reason').fill('office')
    await dialog.getByLabel('List').selectOption('allow')
    await dialog.getByText('as for your own office').waitFor()
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByText('the network with this prefix is 8.8.8.0/24').waitFor()
    expect(await findViolations(page)).toEqual([])
    await dialog.getByLabel('Network').fill('8.8.8.0/24')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('8.8.8.0/24').waitFor()
    await page.goto('/t/listed/lists?kind=country')
    await page.getByText('DE (Germany)').waitFor()
    expect(await entries('kind=network')).toMatchObject({
      total: 1,
      data: [{ list: 'allow', id: '8.8.8.0/24', created_by: email }],
    })

    await page.goto('/t/listed/devices/phone')
    await page.getByRole('button', { name: 'Allow or deny' }).click()
    await dialog.getByLabel('List').selectOption('allow')
    await dialog.getByLabel('Reason').fill('test_phone')
    await dialog.getByRole('button', { name: 'Add' }).click()
    const remove = page.getByRole('button', { name: 'Remove device phone from the allow list' })
    await remove.waitFor()
    expect(await entries('id=phone')).toMatchObject({ total: 1, data: [{ list: 'allow' }] })
    await remove.click()
    const undo = page.getByRole('button', { name: 'Undo' })
    // Under the pointer it stays.
    await undo.hover()
    await remove.waitFor({ state: 'detached' })
    expect((await entries('id=phone')).total).toBe(0)
    await undo.click()
    await remove.waitFor()
    expect(await entries('id=phone')).toMatchObject({
      total: 1,
      data: [{ reason: 'test_phone' }],
    })
    await page.getByRole('button', { name: 'Label', exact: true }).click()
    await dialog.getByLabel('Turned out to be').selectOption('chargeback')
    await dialog.getByLabel('Amount').fill('12,50')
    await dialog.getByLabel('Currency').fill('eur')
    expect(await findViolations(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Label' }).click()
    await dialog.getByText('must be a decimal text').waitFor()
    await dialog.getByLabel('Amount').fill('12.50')
    await dialog.getByRole('button', { name: 'Label' }).click()
    await page.getByRole('cell', { name: '12.50 EUR' }).waitFor()
    await page.goto('/manage/labels?tenant=listed&label=chargeback')
    await page.getByRole('link', { name: 'phone' }).waitFor()
    const [row] = await page.getByRole('row', { name: '12.50 EUR' }).allInnerTexts()
    expect(row).toMatch(/Chargeback[\s\S]*device[\s\S]*phone[\s\S]*@/)
  })
})
