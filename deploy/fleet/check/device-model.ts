/**
 * The model of a device's history, from the requests and their responses. When a request got no
 * response, the model accepts the history with the event and the one without it.
 */

import type { Plan } from '../phones/plan.ts'
import { type EventFact, isAccepted, type Mismatch, maybeStored } from '../send/sent-events.ts'
import type { DeviceHistory, SessionSummary } from './read-back.ts'

/** What the history of a device depends on. */
export type HistoryFact = Pick<
  EventFact,
  'userIds' | 'outcome' | 'sentMs' | 'acceptedMs' | 'endedMs'
> & { scored: { score: number; action: string; reasons: readonly { code: string }[] } }

export type SessionModel<Fact extends HistoryFact = EventFact> = {
  sessionId: string
  facts: Fact[]
}

/** A device with all of its events that may have been stored. */
export type DeviceModel<Fact extends HistoryFact = EventFact> = {
  deviceId: string
  sessions: SessionModel<Fact>[]
  facts: Fact[]
}

/** The clocks of the facts' times. */
export type Clock = {
  /** Wall clock at the start of the run; facts count from it. */
  startedAtMs: number
  /** The maximum difference between the service's clock and ours. */
  clockToleranceMs: number
}

/** Groups facts by device and session, without devices that cannot have a stored event. */
export function toDeviceModels(
  plan: Pick<Plan, 'phones' | 'sessions'>,
  facts: readonly (EventFact | undefined)[],
): DeviceModel[] {
  const models = new Map<number, DeviceModel>()
  const sessions = new Map<number, SessionModel>()
  for (const fact of facts) {
    if (fact === undefined || !maybeStored(fact)) continue
    const { phone, sessionId } = plan.sessions[fact.session]!
    let model = models.get(phone)
    if (model === undefined) {
      model = { deviceId: plan.phones[phone]!.deviceId, sessions: [], facts: [] }
      models.set(phone, model)
    }
    let session = sessions.get(fact.session)
    if (session === undefined) {
      session = { sessionId, facts: [] }
      sessions.set(fact.session, session)
      model.sessions.push(session)
    }
    session.facts.push(fact)
    model.facts.push(fact)
  }
  return [...models.values()]
}

/**
 * Compares a device's history with its model.
 * @param history null when the API returns 404
 */
export function checkDevice(
  model: DeviceModel<HistoryFact>,
  history: DeviceHistory | null,
  clock: Clock,
): Mismatch[] {
  const found: Mismatch[] = []
  const device_id = model.deviceId
  const report: Report = (what, expected, got, session_id) =>
    found.push({ what, device_id, ...(session_id ? { session_id } : {}), expected, got })
  if (history === null) {
    if (model.facts.some(isAccepted)) report('device_missing', 'a history', 404)
    return found
  }
  if (history.device_id !== device_id) report('device_id', device_id, history.device_id)
  const peaks = possibleScores(model.facts)
  if (!peaks.has(history.peak_rasp_score)) {
    report('device_peak_score', [...peaks], history.peak_rasp_score)
  }
  checkUsers(model, history, report)
  checkTimes(model.facts, clock, history.first_seen_at, history.last_seen_at, (...args) =>
    report(`device_${args[0]}`, args[1], args[2]),
  )
  checkSessions(model, history, clock, report)
  return found
}

type Report = (what: string, expected: unknown, got: unknown, sessionId?: string) => void

/** The possible highest scores: that of the accepted events, and higher ones without a response. */
function possibleScores(facts: readonly HistoryFact[]): Set<number> {
  let accepted = -1
  for (const fact of facts) {
    if (isAccepted(fact)) accepted = Math.max(accepted, fact.scored.score)
  }
  const scores = new Set<number>(accepted >= 0 ? [accepted] : [])
  for (const fact of facts) {
    if (!isAccepted(fact) && fact.scored.score > accepted) scores.add(fact.scored.score)
  }
  return scores
}

function checkUsers(model: DeviceModel<HistoryFact>, history: DeviceHistory, report: Report): void {
  const usersOf = (facts: HistoryFact[]) => new Set(facts.flatMap(({ userIds }) => userIds))
  const certain = usersOf(model.facts.filter(isAccepted))
  const possible = usersOf(model.facts)
  const got = history.users_seen_on
  const missing = [...certain].filter((user) => !got.includes(user))
  const foreign = got.filter((user) => !possible.has(user))
  if (missing.length > 0) report('device_users_missing', missing, got)
  if (foreign.length > 0) report('device_users_foreign', [...possible], foreign)
  if (new Set(got).size !== got.length || got.join('\n') !== [...got].sort().join('\n')) {
    report('device_users_order', 'sorted, each once', got)
  }
}

/** Checks that first and last seen are within the times of our requests. */
function checkTimes(
  facts: readonly HistoryFact[],
  { startedAtMs, clockToleranceMs }: Clock,
  first: string,
  last: string,
  report: (what: string, expected: unknown, got: unknown) => void,
): void {
  const accepted = facts.filter(isAccepted)
  const iso = (ms: number) => new Date(startedAtMs + ms).toISOString()
  const firstMs = Date.parse(first) - startedAtMs
  const lastMs = Date.parse(last) - startedAtMs
  if (firstMs > lastMs) report('times_order', 'first <= last', [first, last])
  const earliest = minimum(facts.map((fact) => fact.sentMs)) - clockToleranceMs
  const firstBy = minimum(accepted.map((fact) => fact.acceptedMs)) + clockToleranceMs
  if (firstMs < earliest || firstMs > firstBy) {
    report('first_seen', [iso(earliest), Number.isFinite(firstBy) ? iso(firstBy) : null], first)
  }
  const lastFrom = maximum(accepted.map((fact) => fact.sentMs)) - clockToleranceMs
  const lastBy = maximum(facts.map((fact) => fact.endedMs)) + clockToleranceMs
  if (lastMs < lastFrom || lastMs > lastBy) {
    report(
      'last_seen',
      [lastFrom, lastBy].map((ms) => (Number.isFinite(ms) ? iso(ms) : null)),
      last,
    )
  }
}

function minimum(values: number[]): number {
  return values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)
}

function maximum(values: number[]): number {
  return values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)
}

function checkSessions(
  model: DeviceModel<HistoryFact>,
  history: DeviceHistory,
  clock: Clock,
  report: Report,
): void {
  const got = new Map(history.sessions.map((session) => [session.session_id, session]))
  if (got.size !== history.sessions.length) {
    report('session_twice', 'each session once', history.sessions.length - got.size)
  }
  if (history.sessions_total !== got.size) {
    report('sessions_total', got.size, history.sessions_total)
  }
  const started = history.sessions.map((session) => Date.parse(session.started_at))
  if (started.some((ms, at) => at > 0 && ms > started[at - 1]!)) {
    report(
      'sessions_order',
      'most recent first',
      history.sessions.map((one) => one.started_at),
    )
  }
  for (const session of model.sessions) {
    const summary = got.get(session.sessionId)
    got.delete(session.sessionId)
    if (summary !== undefined) checkSession(session, summary, clock, report)
    else if (session.facts.some(isAccepted)) {
      report('session_missing', 'a session', null, session.sessionId)
    }
  }
  for (const sessionId of got.keys()) report('session_foreign', null, 'a session', sessionId)
}

function checkSession(
  model: SessionModel<HistoryFact>,
  summary: SessionSummary,
  clock: Clock,
  reportOf: Report,
): void {
  const report = (what: string, expected: unknown, got: unknown) =>
    reportOf(`session_${what}`, expected, got, model.sessionId)
  const scores = possibleScores(model.facts)
  if (!scores.has(summary.rasp_score)) report('score', [...scores], summary.rasp_score)
  const highest = model.facts.filter((fact) => fact.scored.score === summary.rasp_score)
  const action = highest[0]?.scored.action
  if (action !== undefined && summary.rasp_action !== action) {
    report('action', action, summary.rasp_action)
  }
  // Events with the same highest score may have different flags; either's may be the session's.
  const flags = [...new Set(highest.map(flagsOf))]
  if (flags.length > 0 && !flags.includes([...summary.flags].sort().join())) {
    report('flags', flags, summary.flags)
  }
  checkTimes(model.facts, clock, summary.started_at, summary.last_seen_at, report)
}

function flagsOf(fact: HistoryFact): string {
  return fact.scored.reasons
    .map((reason) => reason.code)
    .sort()
    .join()
}
