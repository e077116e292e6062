// Alerts as operators work on them, on a whole stack: the list, one alert with all about it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AlertDetail } from '../../../services/console/alerts/alert-schemas.ts'
import {
  admin,
  createTenant,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

let running: TestStack
let tenant: Tenant

const rooted = {
  root: { su_binary: true, magisk_detected: true },
  debugger: { frida_detected: true },
}

beforeAll(async () => {
  running = await startStack()
  tenant = await createTenant(running.stack, 'work')
  for (let n = 0; n < 12; n++) {
    const submission = { device: `d${n % 4}`, session: `s${n}`, user: `u${n % 3}`, signals: rooted }
    const body = toBody(tenant.tenant_id, submission)
    expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
  }
  await until('twelve alerts', async () => {
    const { total } = await readAlerts(running.stack, tenant.public_api_key)
    return total === 12 ? true : null
  })
})
afterAll(() => running?.discard())

const call = <T>(method: string, path: string, body?: unknown) =>
  admin<T>(running.stack, method, path, body)

type Row = { alert_id: string; event_id: string; assignee: string | null; notes: number }
type Page = { data: Row[]; total: number; limit: number; next_cursor: string | null }
const list = (query = '') => call<Page>('GET', `/tenants/work/alerts${query}`)

describe('the list', () => {
  it('is the list of the REST API, with assignee and notes, and pages by cursor', async () => {
    const { alerts } = await readAlerts(running.stack, tenant.public_api_key)
    const seen: Row[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: Page = await list(`?limit=5${cursor && `&cursor=${cursor}`}`)
      expect(page.total).toBe(12)
      seen.push(...page.data)
      cursor = page.next_cursor
    }
    expect(seen).toEqual(alerts.map((alert) => ({ ...alert, assignee: null, notes: 0 })))
  })

  it('takes the same filters, and the assignee', async () => {
    const { data, total } = await list('?user_id=u1&severity=CRITICAL&min_score=75')
    expect([total, data.length]).toEqual([4, 4])
    const { alert_id: id } = data[0]!
    await call('PUT', `/alerts/${id}/assignee`, { assignee: 'ann@example.com' })
    const mine = await list('?assignee=ann@example.com')
    expect(mine).toMatchObject({ total: 1, data: [{ alert_id: id, assignee: 'ann@example.com' }] })
    expect((await list('?assignee=none')).total).toBe(11)
    expect((await list('?assignee=none&user_id=u1')).total).toBe(3)
    await call('PUT', `/alerts/${id}/assignee`, { assignee: null })
    expect((await list('?assignee=none')).total).toBe(12)
    await expect(list('?assigned=x')).rejects.toThrow(/assigned/)
  })
})

describe('an alert', () => {
  it('has its notes, history, delivery and explanation, and what the present policies say', async () => {
    const [row] = (await list('?limit=1')).data
    const id = row!.alert_id
    await call('POST', `/alerts/${id}/notes`, { note: 'called the customer' })
    await call('POST', `/alerts/${id}/disposition`, { disposition: 'CONFIRMED', note: 'fraud' })
    await call('PUT', '/tenants/work/policy/shadow', { preset: 'permissive' })
    const detail = await until('an explanation', async () => {
      const found = await call<AlertDetail>('GET', `/alerts/${id}`)
      return found.explanation === null ? null : found
    })
    expect(detail.alert).toMatchObject({ alert_id: id, disposition: 'CONFIRMED', notes: 1 })
    expect(detail.notes).toMatchObject([{ author: 'admin', note: 'called the customer' }])
    expect(detail.history).toMatchObject([
      { actor: 'admin', from: 'OPEN', to: 'CONFIRMED', note: 'fraud' },
    ])
    expect(detail.deliveries).toMatchObject([{ alert_id: id }])
    expect(detail.unexplained).toBeNull()
    const { explanation, now } = detail
    expect(explanation).toMatchObject({ matches: true, event: { event_id: row!.event_id } })
    const raised = explanation!.alerts.find((one) => one.alert_id === id)
    expect(raised).toMatchObject({ raised_by_this_event: true })
    // The policy is the one that raised it, so it says the same now.
    expect(now.active).toMatchObject({
      version: detail.policy_version,
      action: detail.alert.decision.action,
      risk_score: detail.alert.decision.risk_score,
      risk_features: true,
    })
    expect(now.shadow!.name).not.toBe(now.active!.name)
    expect(now.shadow!.rasp_score).toBeLessThanOrEqual(now.active!.rasp_score)
  })

  it('shows the body of its event, byte for byte, when asked for', async () => {
    const [row] = (await list('?limit=1')).data
    const shown = await call<{ body: string; intact: boolean }>(
      'GET',
      `/events/${row!.event_id}/body`,
    )
    expect(shown.intact).toBe(true)
    expect(JSON.parse(shown.body)).toMatchObject({ tenant_id: 'work', signals: rooted })
  })

  it('that does not exist is a 404', async () => {
    await expect(call('GET', '/alerts/alr_none')).rejects.toThrow(/alert_not_found/)
  })
})
