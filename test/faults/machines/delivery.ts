/**
 * Two delivery processes on a real PostgreSQL that claim, record, die and outlast their claims,
 * sequentially and concurrently, while an operator replays, pauses and resumes. After every step
 * the rows equal a model: no two processes claim one delivery, no outcome of a lost claim counts,
 * attempts are numbered without a gap, and no claim is early or during a pause.
 */
import fc from 'fast-check'
import { createDeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import type { AttemptRecord, DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import { beginReplay, replayNext } from '#shared/io/deliveries/replay-deliveries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { decideNext } from '../../../services/delivery/send/decide-next.ts'
import { createDeliveryFixtures } from '../../support/deliveries/delivery-fixtures.ts'
import { atTime } from '../../support/servers/database-clock.ts'
import {
  anyCommands,
  demand,
  demandEqual,
  type MachineOptions,
  type MachineReport,
  type Note,
  runCommands,
  runMachine,
  toCommand,
} from './run-machine.ts'

type Row = {
  state: 'pending' | 'delivered' | 'failed' | 'skipped'
  attempts: number
  before: number
  dueMs: number
  claim: string | null
}
type Claimed = {
  deliveryId: string
  createdAt: string
  claim: string
  attempts: number
  before: number
  body: string
}
type Process = { claimed: Claimed[] }

const claimMs = 30_000
const startMs = Date.parse('2031-01-01T00:00:00Z')
let claims = 0

async function createHistory(postgres: Postgres, note: Note) {
  let nowMs = startMs
  const clock = { nowMs: () => nowMs }
  const db = atTime(postgres, clock)
  const store = createDeliveryStore(db)
  const fixtures = createDeliveryFixtures(postgres)
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/a' })
  const processes: [Process, Process] = [{ claimed: [] }, { claimed: [] }]
  const rows = new Map<string, Row>()
  const untilMs = new Map<string, number>()
  const bodies = new Map<string, string>()
  let paused = false

  const isFree = ({ claim }: Row, takeOver: boolean) =>
    claim === null || (takeOver && untilMs.get(claim)! <= nowMs)
  const listClaimable = (takeOver: boolean) =>
    [...rows].flatMap(([id, row]) => {
      const due = row.state === 'pending' && row.dueMs <= nowMs
      return due && !paused && isFree(row, takeOver) ? [id] : []
    })
  const claimOnce = async (process: Process, takeOver: boolean) => {
    const claim = `claim-${++claims}`
    const queues = [false, true].map((retry) => ({ tenantId, retry, limit: 100 }))
    const got = await store.claimDeliveries({ queues, claim, claimMs, takeOver })
    untilMs.set(claim, nowMs + claimMs)
    for (const { deliveryId, createdAt, attempts, attemptsBefore: before, body } of got) {
      const text = body.toString()
      demandEqual(text, bodies.get(deliveryId) ?? text, 'the bytes of a delivery')
      bodies.set(deliveryId, text)
      process.claimed.push({ deliveryId, createdAt, claim, attempts, before, body: text })
    }
    return { claim, ids: got.map((one) => one.deliveryId) }
  }
  const grant = (claim: string, ids: readonly string[]) => {
    for (const id of ids) {
      if (rows.get(id)!.claim !== null) note('claim taken over')
      rows.get(id)!.claim = claim
    }
    note('claimed', ids.length)
  }
  const toOutcome = (claimed: Claimed, status: number): DeliveryOutcome => {
    const attempt: AttemptRecord = {
      attempt: claimed.attempts + 1,
      atMs: nowMs,
      durationMs: 5,
      status,
      errorKind: null,
      error: null,
      address: '127.0.0.1',
      answer: null,
    }
    const tried = { attempt: claimed.attempts - claimed.before + 1, once: false, status }
    const { next: decided } = decideNext({ ...tried, retryAfter: undefined }, nowMs, 0)
    const { deliveryId, createdAt, claim } = claimed
    const next =
      decided.state === 'pending'
        ? { state: decided.state, dueAtMs: nowMs + decided.delayMs }
        : decided
    return { tenantId, deliveryId, createdAt, alertId: null, claim, attempt, next }
  }
  const apply = (outcome: DeliveryOutcome): boolean => {
    const row = rows.get(outcome.deliveryId)!
    if (row.claim !== outcome.claim) {
      note('outcome of a lost claim')
      return false
    }
    const { next } = outcome
    row.claim = null
    row.attempts = outcome.attempt!.attempt
    row.state = next.state
    if (next.state === 'pending') row.dueMs = next.dueAtMs
    note(next.state)
    return true
  }
  const check = async () => {
    const found = await postgres.query<{
      delivery_id: string
      state: Row['state']
      attempts: number
      before: number
      due_at: Date
      claimed_by: string | null
      made: number[] | null
    }>(
      `select delivery_id, state, attempts, attempts_before_replay as before, due_at, claimed_by,
         (select array_agg(attempt order by attempt) from delivery_attempts as a
          where a.delivery_id = d.delivery_id) as made
       from deliveries as d where tenant_id = $1 order by delivery_id`,
      [tenantId],
    )
    const expected = [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
    demandEqual(
      found.rows.map(({ delivery_id, due_at, claimed_by, made: _, ...row }) => [
        delivery_id,
        { ...row, dueMs: due_at.getTime(), claim: claimed_by },
      ]),
      expected.map(([id, { dueMs, claim, ...row }]) => [id, { ...row, dueMs, claim }]),
      'deliveries',
    )
    for (const { attempts, made } of found.rows) {
      demandEqual(
        made ?? [],
        Array.from({ length: attempts }, (_, at) => at + 1),
        'attempts',
      )
    }
  }
  return {
    add: async (count: number) => {
      const ids = await fixtures.addDeliveries(tenantId, count, { atMs: nowMs })
      for (const id of ids) {
        rows.set(id, { state: 'pending', attempts: 0, before: 0, dueMs: nowMs, claim: null })
      }
      await check()
    },
    claim: async (at: 0 | 1, takeOver: boolean) => {
      const expected = listClaimable(takeOver)
      const { claim, ids } = await claimOnce(processes[at], takeOver)
      demandEqual([...ids].sort(), expected.sort(), 'claimed deliveries')
      grant(claim, ids)
      await check()
    },
    claimBoth: async (takeOver: boolean) => {
      const expected = listClaimable(takeOver)
      const got = await Promise.all(processes.map((process) => claimOnce(process, takeOver)))
      const all = got.flatMap(({ ids }) => ids)
      demandEqual(new Set(all).size, all.length, 'deliveries claimed twice')
      demand(
        all.every((id) => expected.includes(id)),
        'a delivery was claimed that is not due',
      )
      for (const { claim, ids } of got) grant(claim, ids)
      if (got.every(({ ids }) => ids.length > 0)) note('claim shared by both')
      await check()
    },
    /** Both record the deliveries they have, or once had, at the same time. */
    record: async (who: readonly (0 | 1)[], status: number) => {
      const each = who.map((at) => {
        const outcomes = processes[at].claimed
          .splice(0)
          .map((claimed) => toOutcome(claimed, status))
        // One statement cannot take two outcomes of one delivery; the engine never sends them.
        return [...new Map(outcomes.map((one) => [one.deliveryId, one])).values()]
      })
      const answers = await Promise.all(each.map((some) => store.recordOutcomes(some, nowMs)))
      each.forEach((outcomes, at) => {
        const counted = outcomes.filter(apply).map(({ deliveryId }) => deliveryId)
        demandEqual([...answers[at]!.recorded].sort(), counted.sort(), 'outcomes that count')
      })
      await check()
    },
    die: (at: 0 | 1) => {
      if (processes[at].claimed.length > 0) note('death with claims')
      processes[at].claimed = []
    },
    pass: (ms: number) => {
      nowMs += ms
    },
    replay: async (onlyFailed: boolean) => {
      const expected = [...rows].filter(([, { state, claim }]) => {
        return claim === null && (!onlyFailed || state === 'failed' || state === 'skipped')
      })
      const scope = { sinceMs: null, onlyFailed }
      const progress = await beginReplay(postgres)
      const { deliveryIds } = await replayNext(db, { tenantId, scope, progress })
      demandEqual([...deliveryIds].sort(), expected.map(([id]) => id).sort(), 'what is replayed')
      for (const [, row] of expected) {
        note('replayed')
        row.dueMs = row.state === 'pending' ? Math.min(row.dueMs, nowMs) : nowMs
        if (row.state !== 'pending') row.before = row.attempts
        row.state = 'pending'
      }
      await check()
    },
    pause: async (expected: boolean) => {
      paused = expected
      const state = expected ? 'paused' : 'on'
      await fixtures.setWebhook(tenantId, 'https://example.com/a', state)
    },
  }
}

type History = Awaited<ReturnType<typeof createHistory>>
const at = fc.constantFrom<0 | 1>(0, 1)
const flag = fc.boolean()
const mostlyOff = fc.constantFrom(true, false, false, false)
const named = <Values extends unknown[]>(
  name: string,
  run: (history: History, ...values: Values) => Promise<void> | void,
  values: fc.Arbitrary<Values>,
) =>
  values.map((some) =>
    toCommand<History>(`${name}(${JSON.stringify(some)})`, (history) => run(history, ...some)),
  )
const who = fc.constantFrom<(0 | 1)[]>([0], [1], [0, 1], [1, 0])
const statuses = fc.constantFrom(200, 500, 500, 410)
const waits = fc.constantFrom(100, 5_500, 29_999, 30_001, 30_001, 2_000_000, 100_000_000)

const record = named(
  'record',
  (one, some, status) => one.record(some, status),
  fc.tuple(who, statuses),
)
const claim = named('claim', (one, id, over) => one.claim(id, over), fc.tuple(at, flag))
const claimBoth = named('claimBoth', (one, over) => one.claimBoth(over), fc.tuple(flag))
const pass = named('pass', (one, ms) => one.pass(ms), fc.tuple(waits))
/**
 * A claim expires while its process still works, another process claims the delivery, and then the
 * first one records its outcome.
 */
const overstay = named(
  'overstay',
  async (one, status) => {
    await one.claim(0, true)
    one.pass(claimMs + 1)
    await one.claim(1, true)
    await one.record([0, 1], status)
  },
  fc.tuple(statuses),
)
const commands = anyCommands<History>(
  [
    ...[named('add', (one, n) => one.add(n), fc.tuple(fc.integer({ min: 1, max: 6 })))],
    ...[claim, claim, claim, claimBoth, claimBoth, record, record, record, pass, pass],
    ...[overstay, named('die', (one, id) => one.die(id), fc.tuple(at))],
    ...[named('replay', (one, only) => one.replay(only), fc.tuple(flag))],
    ...[named('pause', (one, on) => one.pause(on), fc.tuple(mostlyOff))],
  ],
  40,
)

/** @param postgres migrated; four connections or more */
export function runDelivery(options: MachineOptions, postgres: Postgres): Promise<MachineReport> {
  return runMachine(options, commands, async (note, steps) => {
    await runCommands(await createHistory(postgres, note), steps)
  })
}
