/**
 * The pure decisions about the deliveries of one webhook, over whole lives of deliveries: schedule,
 * `Retry-After`, 410, replays, and the circuit breaker. No attempt is early, there are at most
 * eleven, an end is final until a replay, and the circuit opens exactly when the latest attempts
 * require it.
 */
import fc from 'fast-check'
import {
  breakerAttemptsMax,
  breakerAttemptsMin,
  breakerFailedShare,
  breakerWindowMs,
  retryAfterDelayMaxMs,
} from '#shared/core/base/limits/deliveries.ts'
import { jitterShare, retryDelaysMs } from '#shared/core/deliveries/retry-schedule.ts'
import { createCircuitBreaker } from '../../../services/delivery/send/circuit-breaker.ts'
import { decideNext } from '../../../services/delivery/send/decide-next.ts'
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

/** The contract's waits in seconds, in the order of attempts. */
const waitsS = [5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000]

type Delivery = { state: 'pending' | 'delivered' | 'failed'; attempts: number; dueMs: number }
type Answer = { status: number | null; retryAfterS: number | null; random: number }

function createHistory(note: Note) {
  let nowMs = 0
  const deliveries: Delivery[] = []
  const breaker = createCircuitBreaker()
  /** Every attempt since the last moment without a failed one in the window. */
  let past: { ok: boolean; atMs: number }[] = []
  const noteAttempt = (ok: boolean) => {
    const opens = breaker.record('acme', 'https://example.com', ok, nowMs)
    past.push({ ok, atMs: nowMs })
    const latest = past
      .filter(({ atMs }) => nowMs - atMs <= breakerWindowMs)
      .slice(-breakerAttemptsMax)
    const failed = latest.filter((one) => !one.ok).length
    if (failed === 0) past = []
    const opensByModel =
      latest.length >= breakerAttemptsMin && failed >= latest.length * breakerFailedShare
    demandEqual(opens, failed > 0 && opensByModel, 'whether the circuit opens')
    if (opens) note('circuit opens')
  }
  return {
    add: () => {
      deliveries.push({ state: 'pending', attempts: 0, dueMs: nowMs })
    },
    /** Advances the time until the next delivery is due. */
    attempt: ({ status, retryAfterS, random }: Answer) => {
      const waiting = deliveries.filter(({ state }) => state === 'pending')
      const next = waiting.sort((a, b) => a.dueMs - b.dueMs)[0]
      if (next === undefined) return
      nowMs = Math.max(nowMs, next.dueMs)
      next.attempts++
      const attempted = { attempt: next.attempts, once: false, status }
      const retryAfter = retryAfterS === null ? undefined : String(retryAfterS)
      const { next: outcome, gone } = decideNext({ ...attempted, retryAfter }, nowMs, random)
      const ok = status !== null && status >= 200 && status < 300
      noteAttempt(ok)
      note(outcome.state)
      demandEqual(outcome.state === 'delivered', ok, 'only a 2xx delivers')
      demandEqual(gone, status === 410, 'only a 410 is gone')
      if (outcome.state === 'failed') {
        const why = status === 410 ? 'gone' : 'exhausted'
        demandEqual(outcome.reason, why, 'why it failed')
        demand(status === 410 || next.attempts === waitsS.length + 1, 'it failed early')
      }
      if (outcome.state === 'skipped') throw new Error('an attempt is never a skip')
      next.state = outcome.state
      if (outcome.state === 'pending') {
        next.dueMs = nowMs + outcome.delayMs
        demand(next.attempts <= waitsS.length, 'it is tried a twelfth time')
        const waitMs = outcome.delayMs
        const baseMs = waitsS[next.attempts - 1]! * 1_000
        demand(waitMs >= baseMs, `attempt ${next.attempts + 1} is early: after ${waitMs} ms`)
        const retryAfterMs = status === 429 || status === 503 ? (retryAfterS ?? 0) * 1_000 : 0
        const most = Math.max(
          baseMs * (1 + jitterShare),
          Math.min(retryAfterMs, retryAfterDelayMaxMs),
        )
        demand(waitMs <= most, `attempt ${next.attempts + 1} is late: after ${waitMs} ms`)
        if (waitMs > baseMs * (1 + jitterShare)) note('delayed by Retry-After')
      }
    },
    replay: () => {
      for (const one of deliveries) {
        if (one.state === 'pending') continue
        note('replayed')
        Object.assign(one, { state: 'pending', attempts: 0, dueMs: nowMs })
      }
    },
  }
}

type History = ReturnType<typeof createHistory>
const answer = fc.record<Answer>({
  status: fc.constantFrom(200, 204, 302, 400, 410, 429, 500, 500, 500, 503, null),
  retryAfterS: fc.option(fc.nat({ max: 100_000 })),
  random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
})
const attempt = answer.map((one) =>
  toCommand<History>(`attempt(${JSON.stringify(one)})`, (history) => history.attempt(one)),
)
const down = fc.integer({ min: 5, max: 40 }).map((count) =>
  toCommand<History>(`down(${count})`, (history) => {
    for (let n = 0; n < count; n++) {
      history.add()
      history.attempt({ status: 500, retryAfterS: null, random: 0 })
    }
  }),
)
const add = fc.constant(toCommand<History>('add', (history) => history.add()))
const replay = fc.constant(toCommand<History>('replay', (history) => history.replay()))
const commands = anyCommands<History>([add, attempt, attempt, attempt, attempt, replay, down], 80)

export function runDeliveryRules(options: MachineOptions): Promise<MachineReport> {
  demandEqual(
    retryDelaysMs,
    waitsS.map((s) => s * 1_000),
    'the schedule',
  )
  return runMachine(options, commands, (note, steps) => runCommands(createHistory(note), steps))
}
