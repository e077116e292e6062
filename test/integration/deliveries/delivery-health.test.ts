// A failing webhook: its circuit opens without spending attempts, half-open probes go out one at a
// time, deliveries continue after a recovery, and the webhook is switched off after five days of
// failure.
import { expect, test } from 'vitest'
import {
  breakerAttemptsMin,
  circuitOpenMs,
  webhookFailingMaxMs,
} from '#shared/core/base/limits/deliveries.ts'
import { useDeliveryDatabase } from '../../support/deliveries/delivery-database.ts'
import {
  createClock,
  startTestEngine,
  type TestEngine,
} from '../../support/deliveries/delivery-engine.ts'
import { type Answer, startReceiver } from '../../support/deliveries/receiver.ts'
import { waitFor } from '../../support/process/wait-for.ts'

const { postgres, fixtures, closers } = await useDeliveryDatabase()

const start = Date.parse('2027-01-01T00:00:00Z')
const answer =
  (code: number): Answer =>
  (response) =>
    response.writeHead(code).end()

type Health = {
  state: string
  off_reason: string | null
  failing_since: Date | null
  failed_attempts: number
  last_failure: string | null
  circuit_open_until: Date | null
  failed_probes: number
}

async function readHealth(tenantId: string): Promise<Health> {
  const { rows } = await postgres.query<Health>(
    `select state, off_reason, failing_since, failed_attempts, last_failure, circuit_open_until,
       failed_probes from webhooks where tenant_id = $1`,
    [tenantId],
  )
  return rows[0]!
}

/** A tenant with deliveries to a failing receiver, and an engine on the test's clock. */
async function setUp(count: number, engines = 1) {
  const there = await startReceiver(answer(500))
  closers.push(there.close)
  const { tenantId } = await fixtures.addTenant({ url: there.url })
  const ids = await fixtures.addDeliveries(tenantId, count, { atMs: start })
  const clock = createClock(start)
  const started: TestEngine[] = []
  for (let n = 0; n < engines; n++) {
    const one = startTestEngine(postgres, { clock, random: () => 0 })
    closers.push(() => one.stop(0))
    started.push(one)
  }
  const settle = async () => {
    const before = await Promise.all(started.map((one) => one.sweeps()))
    await waitFor(async () => {
      const now = await Promise.all(started.map((one) => one.sweeps()))
      expect(now.every((sweeps, n) => sweeps >= before[n]! + 3)).toBe(true)
    })
    await waitFor(async () => {
      const { rows } = await postgres.query<{ n: number }>(
        'select count(*) as n from deliveries where claimed_by is not null',
      )
      expect(rows[0]!.n).toBe(0)
    })
  }
  return { there, tenantId, ids, clock, engine: started[0]!, settle }
}

async function countUntouched(tenantId: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*) as n from deliveries
     where tenant_id = $1 and attempts = 0 and state = 'pending'`,
    [tenantId],
  )
  return rows[0]!.n
}

test('an open circuit sends one probe at a time and delivers when it closes', async () => {
  const { there, tenantId, ids, clock, engine, settle } = await setUp(300)
  await waitFor(async () => expect((await readHealth(tenantId)).circuit_open_until).not.toBeNull())
  await settle()
  const tried = there.requests.length
  // Requests in flight when it opened have failed too; the other deliveries are untouched.
  expect(tried).toBeGreaterThanOrEqual(breakerAttemptsMin)
  expect(tried).toBeLessThan(120)
  expect(await countUntouched(tenantId)).toBe(300 - tried)
  expect(await readHealth(tenantId)).toMatchObject({
    state: 'on',
    failing_since: new Date(start),
    failed_attempts: tried,
    last_failure: 'status 500',
    circuit_open_until: new Date(start + circuitOpenMs[0]!),
    failed_probes: 0,
  })
  await settle()
  expect(there.requests).toHaveLength(tried)
  let nowMs = start
  for (const [n, waitMs] of [...circuitOpenMs.slice(1), 30_000, 30_000].entries()) {
    nowMs = (await readHealth(tenantId)).circuit_open_until!.getTime()
    clock.set(nowMs - 1)
    await settle()
    expect(there.requests).toHaveLength(tried + n)
    clock.set(nowMs)
    await waitFor(() => expect(there.requests).toHaveLength(tried + n + 1))
    await settle()
    expect(await readHealth(tenantId)).toMatchObject({
      failed_attempts: tried + n + 1,
      failed_probes: n + 1,
      circuit_open_until: new Date(nowMs + waitMs),
    })
  }
  there.setAnswer(answer(204))
  clock.set(nowMs + 30_000)
  await waitFor(async () => expect(await countUntouched(tenantId)).toBe(0))
  await settle()
  expect(await readHealth(tenantId)).toMatchObject({
    failing_since: null,
    failed_attempts: 0,
    last_failure: null,
    circuit_open_until: null,
    failed_probes: 0,
  })
  const { rows } = await postgres.query<{ n: number }>(
    "select count(*) as n from deliveries where delivery_id = any($1) and state = 'delivered'",
    [ids],
  )
  expect(rows[0]!.n).toBe(300)
  expect(await engine.count('di_delivery_circuit_changes_total', { state: 'open' })).toBe(1)
  expect(await engine.count('di_delivery_circuit_changes_total', { state: 'closed' })).toBe(1)
})

test('a circuit opens for a receiver that fails four in five, whatever succeeds meanwhile', async () => {
  const { there, tenantId, clock, engine, settle } = await setUp(0)
  let asked = 0
  const byChance: Answer = (response) => response.writeHead(asked++ % 5 === 0 ? 204 : 500).end()
  there.setAnswer(byChance)
  await fixtures.addDeliveries(tenantId, 300, { atMs: start })
  await waitFor(async () => expect((await readHealth(tenantId)).circuit_open_until).not.toBeNull())
  await settle()
  const tried = there.requests.length
  expect(tried).toBeLessThan(120)
  expect(await countUntouched(tenantId)).toBe(300 - tried)
  // A probe that succeeds closes it, and it opens again for the next failures.
  asked = 0
  clock.set((await readHealth(tenantId)).circuit_open_until!.getTime())
  await waitFor(async () =>
    expect(await engine.count('di_delivery_circuit_changes_total', { state: 'open' })).toBe(2),
  )
  expect(await engine.count('di_delivery_circuit_changes_total', { state: 'closed' })).toBe(1)
  await settle()
  expect(await countUntouched(tenantId)).toBeGreaterThan(0)
})

test('with several processes one sends the probe, and another tenant is not affected', async () => {
  const { there, tenantId, clock, settle } = await setUp(300, 3)
  await waitFor(async () => expect((await readHealth(tenantId)).circuit_open_until).not.toBeNull())
  await settle()
  const tried = there.requests.length
  there.setAnswer(() => undefined)
  clock.set((await readHealth(tenantId)).circuit_open_until!.getTime())
  await waitFor(() => expect(there.requests).toHaveLength(tried + 1))
  const well = await startReceiver(answer(200))
  closers.push(well.close)
  const other = await fixtures.addTenant({ url: well.url })
  await fixtures.addDeliveries(other.tenantId, 50, { atMs: start })
  await waitFor(() => expect(well.requests).toHaveLength(50))
  expect(there.requests).toHaveLength(tried + 1)
})

test('a webhook is off after five days of failure, with reason and audit entry', async () => {
  const { there, tenantId, ids, clock, settle } = await setUp(12)
  await settle()
  expect(await readHealth(tenantId)).toMatchObject({ state: 'on', failed_attempts: 12 })
  await postgres.query('update deliveries set due_at = $1 where delivery_id <> $2', [
    new Date(start + 2 * webhookFailingMaxMs),
    ids[0],
  ])
  const failAgain = async (atMs: number) => {
    await postgres.query('update deliveries set due_at = $2 where delivery_id = $1', [
      ids[0],
      new Date(atMs),
    ])
    clock.set(atMs)
    const before = there.requests.length
    await waitFor(() => expect(there.requests.length).toBe(before + 1))
    await settle()
  }
  await failAgain(start + webhookFailingMaxMs - 1)
  expect((await readHealth(tenantId)).state).toBe('on')
  await failAgain(start + webhookFailingMaxMs)
  await waitFor(async () =>
    expect(await readHealth(tenantId)).toMatchObject({
      state: 'off',
      off_reason: 'failing',
      failing_since: new Date(start),
      failed_attempts: 14,
    }),
  )
  const { rows } = await postgres.query<{ action: string; actor: string; after: object }>(
    'select action, actor, after from audit_log where tenant_id = $1',
    [tenantId],
  )
  expect(rows).toEqual([
    {
      action: 'webhook.switched_off',
      actor: 'system',
      after: {
        state: 'off',
        off_reason: 'failing',
        failing_since: new Date(start).toISOString(),
        failed_attempts: 14,
        last_failure: 'status 500',
      },
    },
  ])
})

test('a webhook stays on with one success in five days, and with few failures', async () => {
  const { there, tenantId, ids, clock, settle } = await setUp(12)
  await settle()
  const again = async (atMs: number, code: number) => {
    there.setAnswer(answer(code))
    clock.set(atMs)
    const before = there.requests.length
    await postgres.query(
      `update deliveries set due_at = $2, state = 'pending', ended_at = null
       where delivery_id = $1`,
      [ids[0], new Date(atMs)],
    )
    await waitFor(() => expect(there.requests.length).toBeGreaterThan(before))
    await settle()
  }
  const day = webhookFailingMaxMs / 5
  await postgres.query('update deliveries set due_at = $2 where delivery_id <> $1', [
    ids[0],
    new Date(start + 100 * day),
  ])
  await again(start + 4 * day, 200)
  expect(await readHealth(tenantId)).toMatchObject({ failing_since: null, failed_attempts: 0 })
  for (const days of [4.5, 6, 9.6, 11]) await again(start + days * day, 500)
  // It has failed for more than five days, but with only four attempts.
  expect(await readHealth(tenantId)).toMatchObject({ state: 'on', failed_attempts: 4 })
})

test('a changed URL is a new webhook: failures of the old one do not count', async () => {
  const { there, tenantId, clock, settle } = await setUp(1)
  await settle()
  const old = await readHealth(tenantId)
  expect(old.failed_attempts).toBe(1)
  there.setAnswer((response) => setTimeout(() => response.writeHead(500).end(), 200))
  clock.set(start + 5_000)
  await waitFor(() => expect(there.requests).toHaveLength(2))
  await postgres.query(
    `update webhooks set url = 'http://127.0.0.1:1/other', failing_since = null,
       failed_attempts = 0, last_failure = null where tenant_id = $1`,
    [tenantId],
  )
  await settle()
  expect(await readHealth(tenantId)).toMatchObject({ failing_since: null, failed_attempts: 0 })
})
