/**
 * A client's model of each device: the history that the responses to its events allow, compared
 * with the history that the service returns. Pure. A time is known to within its request,
 * everything else exactly.
 */
import type { ApiDevice } from '../../../support/http/tenant-client.ts'

/** The server's verdict on an event, from its answer. */
export type Verdict = { score: number; action: string; flags: readonly string[] }

/** An event that was answered with a 200, with any outcome of its earlier tries. */
export type AcceptedSubmission = {
  sessionId: string
  userId: string | null
  verdict: Verdict
  /** From the first try to the end of the answer, on the wall clock that all processes share. */
  firstMs: number
  okMs: number
}

export type SessionModel = {
  sessionId: string
  /** Of the highest score. */
  verdict: Verdict
  /** Actions of its events that raise an alert. */
  alerts: Set<string>
  startedMs: Span
  lastSeenMs: Span
}

/** The earliest and the latest time. */
export type Span = { from: number; to: number }

export type DeviceModel = {
  tenantId: string
  deviceId: string
  sessions: Map<string, SessionModel>
  users: Set<string>
  /** Events in transit; a device is compared when there are none. */
  open: number
}

/** The API's answer, with the fields that the interface does not document. */
export type ShownDevice = Omit<ApiDevice, 'sessions'> & {
  sessions: {
    session_id: string
    rasp_action: string
    rasp_score: number
    flags: string[]
    started_at: string
    last_seen_at: string
  }[]
}

/**
 * Two processes read their clocks at different moments, and instants are truncated to a
 * millisecond.
 */
const slackMs = 5

export const newDevice = (tenantId: string, deviceId: string): DeviceModel => ({
  tenantId,
  deviceId,
  sessions: new Map(),
  users: new Set(),
  open: 0,
})

/** Adds an accepted event to its device's history. */
export function addAccepted(device: DeviceModel, event: AcceptedSubmission): void {
  const { sessionId, userId, verdict, firstMs, okMs } = event
  if (userId !== null) device.users.add(userId)
  const session = device.sessions.get(sessionId)
  if (session === undefined) {
    device.sessions.set(sessionId, {
      sessionId,
      verdict,
      alerts: new Set(verdict.action === 'ALLOW' ? [] : [verdict.action]),
      startedMs: { from: firstMs, to: okMs },
      lastSeenMs: { from: firstMs, to: okMs },
    })
    return
  }
  if (verdict.score > session.verdict.score) session.verdict = verdict
  if (verdict.action !== 'ALLOW') session.alerts.add(verdict.action)
  session.startedMs.from = Math.min(session.startedMs.from, firstMs)
  session.startedMs.to = Math.min(session.startedMs.to, okMs)
  session.lastSeenMs.from = Math.max(session.lastSeenMs.from, firstMs)
  session.lastSeenMs.to = Math.max(session.lastSeenMs.to, okMs)
}

const within = (instant: string, { from, to }: Span) => {
  const atMs = Date.parse(instant)
  return atMs >= from - slackMs && atMs <= to + slackMs
}

const sameSet = (shown: readonly string[], known: readonly string[]) =>
  [...shown].sort().join('\n') === [...known].sort().join('\n')

/** @returns the differences between the service's history and the client's, as texts */
export function compareDevice(model: DeviceModel, shown: ShownDevice): string[] {
  const sessions = [...model.sessions.values()]
  const wrong: string[] = []
  const must = (holds: boolean, what: string) => {
    if (!holds) wrong.push(`${model.deviceId}: ${what}`)
  }
  const ids = shown.sessions.map((session) => session.session_id)
  const isSet = new Set(ids).size === ids.length && ids.length === shown.sessions_total
  must(isSet, `${ids.length} sessions, sessions_total ${shown.sessions_total}`)
  must(
    sameSet(ids, [...model.sessions.keys()]),
    `sessions ${ids}, not ${[...model.sessions.keys()]}`,
  )
  must(sameSet(shown.users_seen_on, [...model.users]), `users ${shown.users_seen_on}`)
  const peak = Math.max(...sessions.map((session) => session.verdict.score))
  must(shown.peak_rasp_score === peak, `peak ${shown.peak_rasp_score}, not ${peak}`)
  const least = (pick: (span: SessionModel) => number) => Math.min(...sessions.map(pick))
  const most = (pick: (span: SessionModel) => number) => Math.max(...sessions.map(pick))
  const first = { from: least((one) => one.startedMs.from), to: least((one) => one.startedMs.to) }
  const last = { from: most((one) => one.lastSeenMs.from), to: most((one) => one.lastSeenMs.to) }
  must(within(shown.first_seen_at, first), `first seen ${shown.first_seen_at}`)
  must(within(shown.last_seen_at, last), `last seen ${shown.last_seen_at}`)
  const starts = shown.sessions.map((session) => Date.parse(session.started_at))
  const isSorted = starts.every((start, at) => at === 0 || start <= starts[at - 1]!)
  must(isSorted, 'sessions are not the most recent first')
  for (const session of shown.sessions) {
    const known = model.sessions.get(session.session_id)
    if (known === undefined) continue
    const { score, action, flags } = known.verdict
    const shows = `${session.rasp_score} ${session.rasp_action} ${session.flags}`
    const isVerdict =
      session.rasp_score === score &&
      session.rasp_action === action &&
      sameSet(session.flags, flags)
    must(isVerdict, `${session.session_id} shows ${shows}, not ${score} ${action} ${flags}`)
    must(within(session.started_at, known.startedMs), `${session.session_id} ${session.started_at}`)
    must(within(session.last_seen_at, known.lastSeenMs), `last seen ${session.last_seen_at}`)
  }
  return wrong
}

/** The alerts that a session of a device must have raised: one per action. */
export const alertKey = (deviceId: string, sessionId: string, action: string) =>
  `${deviceId} ${sessionId} ${action}`

/** The keys of all expected alerts. */
export function toExpectedAlerts(devices: Iterable<DeviceModel>): Map<string, Set<string>> {
  const expected = new Map<string, Set<string>>()
  for (const { tenantId, deviceId, sessions } of devices) {
    const keys = expected.get(tenantId) ?? new Set()
    expected.set(tenantId, keys)
    for (const { sessionId, alerts } of sessions.values()) {
      for (const action of alerts) keys.add(alertKey(deviceId, sessionId, action))
    }
  }
  return expected
}
