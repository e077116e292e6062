/**
 * Sends the plan as an open loop: every request leaves at its planned time, however slow responses
 * are, and its latency counts from that time, so stalls are visible. Requests refused for lack of
 * capacity are retried with the same bytes, as an SDK does, a bounded number of times.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { toEventId } from '#shared/core/base/ids.ts'
import type { Plan } from '../phones/plan.ts'
import type { Random } from '../phones/random.ts'
import type { PreparedEvent } from '../phones/telemetry-bodies.ts'
import type { Answer, Post } from './http-calls.ts'
import type { Latencies } from './latencies.ts'
import { addMismatch, type EventFact, noteEnded, noteSent, type SentEvents } from './sent-events.ts'

export type Sending = {
  plan: Plan
  sentEvents: SentEvents
  latencies: Latencies
  post: Post
  /** Makes an event's bytes; `occurredMs` is when it was planned first. */
  prepare: (event: number, occurredMs: number) => PreparedEvent
  sign: (body: Uint8Array) => string
  /** Monotonic ms from the start of the run; negative before it, while bodies are prepared. */
  sinceStartMs: () => number
  /** For the jitter of retries. */
  random: Random
  /** Ends the run early: no further request leaves, and pending retries are dropped. */
  stop: AbortSignal
  onAccepted: (fact: EventFact) => void
}

/** How far ahead bodies are made and signed, so that this work delays no request. */
const aheadMs = 1_000
const aheadBytesMax = 32 * 1024 * 1024

/** The longest slice of this work. */
const sliceMs = 3

/** Requests in flight at which the fleet pauses; latencies keep counting. */
const inFlightMax = 20_000

/** Pauses: 0.25 s, doubled up to 4 s; with `Retry-After` about half a minute in all. */
const triesMax = 10
const firstWaitMs = 250
const waitMaxMs = 4_000

type Ready = PreparedEvent & { signature: string }

/** Sends everything; resolves when the last request has ended. */
export async function sendPlan(sending: Sending): Promise<{ lastDepartureMs: number }> {
  const { plan, sinceStartMs, stop } = sending
  const ready: (Ready | undefined)[] = []
  const arrivals = plan.eventOf.length
  const firstMs = firstTimes(plan)
  let next = 0
  let prepared = 0
  let aheadBytes = 0
  let inFlight = 0
  let lastDepartureMs = 0
  let ended: () => void = () => {}
  const prepareOne = () => {
    const event = plan.eventOf[prepared]!
    const made = sending.prepare(event, firstMs[event]!)
    ready[prepared] = { ...made, signature: sending.sign(made.body) }
    aheadBytes += made.body.length
    prepared++
  }
  const depart = (arrival: number) => {
    if (prepared === arrival) prepareOne()
    const one = ready[arrival]!
    ready[arrival] = undefined
    aheadBytes -= one.body.length
    inFlight++
    lastDepartureMs = sinceStartMs()
    void deliver(sending, one, arrival).finally(() => {
      inFlight--
      if (inFlight === 0) ended()
    })
  }
  while (next < arrivals && !stop.aborted) {
    const nowMs = sinceStartMs()
    while (next < arrivals && plan.atMs[next]! <= nowMs && inFlight < inFlightMax) depart(next++)
    const sliceEndMs = Math.min(sinceStartMs() + sliceMs, plan.atMs[next] ?? 0)
    const isAhead = () =>
      prepared >= arrivals || plan.atMs[prepared]! >= nowMs + aheadMs || aheadBytes >= aheadBytesMax
    while (!isAhead() && sinceStartMs() < sliceEndMs) prepareOne()
    const waitMs = isAhead() ? Math.min((plan.atMs[next] ?? 0) - sinceStartMs(), 50) : 0
    await sleep(Math.max(waitMs, inFlight < inFlightMax ? 0 : 5))
  }
  if (inFlight > 0) {
    await new Promise<void>((resolve) => {
      ended = resolve
    })
  }
  return { lastDepartureMs }
}

/** The planned time of each event's first request. */
function firstTimes(plan: Plan): Float64Array {
  const times = new Float64Array(plan.sessionOf.length)
  for (let arrival = plan.eventOf.length - 1; arrival >= 0; arrival--) {
    times[plan.eventOf[arrival]!] = plan.atMs[arrival]!
  }
  return times
}

async function deliver(sending: Sending, one: Ready, arrival: number): Promise<void> {
  const { plan, sentEvents, sinceStartMs } = sending
  const fact = noteSent(sentEvents, one, sinceStartMs(), plan.isRepeat[arrival] === 1)
  let mayBeStored = false
  for (let attempt = 1; ; attempt++) {
    const answer = await attemptOnce(sending, one)
    if (answer?.status === 200) {
      sending.latencies.record(sinceStartMs() - plan.atMs[arrival]!)
      const isFirst = fact.acceptedMs === null
      noteEnded(sentEvents, fact, 'accepted', sinceStartMs())
      checkAnswer(sentEvents, answer.json, one, plan)
      if (isFirst) sending.onAccepted(fact)
      return
    }
    // After a 503 or no response the event may have been stored.
    if (answer === null || answer.status >= 500) mayBeStored = true
    const again = answer === null || answer.status === 429 || answer.status === 503
    if (again && attempt < triesMax && !sending.stop.aborted) {
      const waitMs = Math.min(firstWaitMs * 2 ** (attempt - 1), waitMaxMs)
      const jittered = waitMs * (0.75 + 0.5 * sending.random.next())
      await pause(Math.max(jittered, answer?.retryAfterMs ?? 0), sending.stop)
      if (!sending.stop.aborted) {
        sentEvents.counters.retries++
        continue
      }
    }
    noteEnded(sentEvents, fact, mayBeStored ? 'unknown' : 'refused', sinceStartMs())
    // Requests dropped by an interrupted run are no failures.
    if (!again || !sending.stop.aborted) {
      addMismatch(sentEvents.mismatches, refusal(plan, one, answer, mayBeStored))
    }
    return
  }
}

async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stop }).catch(() => {})
}

async function attemptOnce(sending: Sending, one: Ready): Promise<Answer | null> {
  const { answers } = sending.sentEvents.counters
  try {
    const answer = await sending.post(one.body, one.signature)
    answers[answer.status] = (answers[answer.status] ?? 0) + 1
    return answer
  } catch (error) {
    const kind = (error as { code?: unknown }).code
    const name = typeof kind === 'string' ? kind : 'failed'
    answers[name] = (answers[name] ?? 0) + 1
    return null
  }
}

function refusal(plan: Plan, one: Ready, answer: Answer | null, mayBeStored: boolean) {
  return {
    ...placeOf(plan, one.event),
    what: mayBeStored ? 'telemetry_unanswered' : 'telemetry_refused',
    expected: 200,
    got: { status: answer?.status ?? null, body: answer?.json ?? null },
  }
}

function placeOf(plan: Plan, event: number): { device_id: string; session_id: string } {
  const session = plan.sessions[plan.sessionOf[event]!]!
  return { device_id: plan.phones[session.phone]!.deviceId, session_id: session.sessionId }
}

type IngestAnswer = {
  status?: unknown
  rasp_score?: unknown
  rasp_action?: unknown
  event_id?: unknown
  flags?: unknown
}

/** Checks that the response has the score of the pure scorer and the event id of the bytes. */
function checkAnswer(sentEvents: SentEvents, json: unknown, one: Ready, plan: Plan): void {
  const answer = (json ?? {}) as IngestAnswer
  const expected = {
    status: 'accepted',
    rasp_score: one.scored.score,
    rasp_action: one.scored.action,
    event_id: toEventId(one.body),
    flags: one.scored.reasons.map((reason) => reason.code).sort(),
  }
  const flags = Array.isArray(answer.flags) ? answer.flags.map(String).sort() : []
  const agrees =
    answer.status === expected.status &&
    answer.rasp_score === expected.rasp_score &&
    answer.rasp_action === expected.rasp_action &&
    answer.event_id === expected.event_id &&
    flags.join() === expected.flags.join()
  if (agrees) return
  const mismatch = { what: 'ingest_answer', ...placeOf(plan, one.event), expected, got: answer }
  addMismatch(sentEvents.mismatches, mismatch)
}
