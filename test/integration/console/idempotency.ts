// Changes by operators with an `Idempotency-Key`.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import {
  admin,
  createTenant,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** Tests on the stack of the file that calls this. */
export function describeIdempotency(getRunning: () => TestStack): void {
  let running: TestStack
  let receiver: Receiver
  let tenant: Tenant
  let alertId: string

  beforeAll(async () => {
    running = getRunning()
    receiver = await startReceiver()
    tenant = await createTenant(running.stack, 'once', receiver.url)
    const signals = { root: { su_binary: true, magisk_detected: true } }
    const body = toBody(tenant.tenant_id, { device: 'd', session: 's', user: 'u', signals })
    expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
    const alerts = await until('an alert', async () => {
      const page = await readAlerts(running.stack, tenant.public_api_key)
      return page.total > 0 ? page.alerts : null
    })
    alertId = alerts[0]!.alert_id
  })
  afterAll(async () => {
    await receiver?.close()
  })

  async function post(path: string, body: unknown, key: string) {
    const answer = await fetch(`${running.stack.console}/admin/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${running.stack.admin_token}`,
        'idempotency-key': key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const replayed = answer.headers.get('idempotent-replayed')
    return { status: answer.status, replayed, text: await answer.text() }
  }

  const read = <T>(path: string) => admin<T>(running.stack, 'GET', path)

  /** How many entries of an action the audit log of the tenant has. */
  async function countAudited(action: string): Promise<number> {
    const { data } = await read<{ data: { action: string }[] }>('/tenants/once/audit?limit=100')
    return data.filter((entry) => entry.action === action).length
  }

  describe('a repeat with the same key', () => {
    it.each([
      ['a disposition', () => `/alerts/${alertId}/disposition`, { disposition: 'CONFIRMED' }, 200],
      ['a note', () => `/alerts/${alertId}/notes`, { note: 'once' }, 201],
      ['a replay', () => '/tenants/once/deliveries/replay', () => ({ alert_id: alertId }), 200],
      [
        'a list entry',
        () => '/tenants/once/lists',
        { list: 'deny', kind: 'device', id: 'listed', reason: 'once' },
        201,
      ],
      ['a test event', () => '/tenants/once/deliveries/test', undefined, 201],
      [
        'a bulk change',
        () => '/tenants/once/alerts/bulk-disposition',
        { filter: {}, expected_count: 1, disposition: 'REVIEWED' },
        202,
      ],
    ])('of %s gets the first answer and changes nothing', async (_, toPath, given, status) => {
      const body = typeof given === 'function' ? given() : given
      const key = randomUUID()
      const audited = async () =>
        (await read<{ data: unknown[] }>('/tenants/once/audit?limit=100')).data.length
      const before = await audited()
      const first = await post(toPath(), body, key)
      expect([first.status, first.replayed], first.text).toEqual([status, null])
      const changed = await audited()
      expect(changed).toBeGreaterThan(before)
      const again = await post(toPath(), body, key)
      expect(again).toEqual({ ...first, replayed: 'true' })
      const other = await post(toPath(), { ...(body ?? {}), note: 'another' }, key)
      if (body !== undefined) expect(other.status).toBeGreaterThanOrEqual(400)
      // The bulk job itself adds entries as it goes on.
      if (status !== 202) expect(await audited()).toBe(changed)
    })

    it('of a bulk change begins one job', async () => {
      const { data } = await read<{ data: unknown[] }>('/tenants/once/bulk-jobs')
      expect(data).toHaveLength(1)
      expect(await countAudited('alert.bulk_begun')).toBe(1)
    })

    it('of a test event sends one', async () => {
      const tests = () =>
        receiver.requests.filter((one) => one.headers['x-service-event'] === 'webhook.test')
      await until('the test event', async () => (tests().length > 0 ? true : null))
      expect(await countAudited('webhook.tested')).toBe(1)
    })
  })

  it.each([{ failed: true }, { since: '2026-01-01' }])(
    'a replay of %j, which is many transactions, rejects the header and sends nothing',
    async (body) => {
      const before = await countAudited('deliveries.replayed')
      const answer = await post('/tenants/once/deliveries/replay', body, randomUUID())
      expect([answer.status, JSON.parse(answer.text).code]).toEqual([
        400,
        'idempotency_key_refused',
      ])
      expect(await countAudited('deliveries.replayed')).toBe(before)
    },
  )

  describe('calls whose answers hold secrets', () => {
    it.each([
      ['/tenants', { tenant_id: 'never' }],
      ['/tenants/once/rotate', {}],
      ['/tenants/once/keys', { name: 'never', scopes: ['read'] }],
      ['/operators/invitations', { email: 'never@example.com', role: 'viewer' }],
    ])('POST %s rejects the header and changes nothing', async (path, body) => {
      const answer = await post(path, body, randomUUID())
      expect([answer.status, JSON.parse(answer.text).code]).toEqual([
        400,
        'idempotency_key_refused',
      ])
      const { data } = await read<{ data: { tenant_id: string }[] }>('/tenants')
      expect(data.map((one) => one.tenant_id)).not.toContain('never')
      expect(await read('/tenants/once/keys')).toMatchObject({ data: [] })
      expect(await countAudited('tenant.rotated')).toBe(0)
    })
  })
}
