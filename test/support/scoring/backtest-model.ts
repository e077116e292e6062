// The expected result of a backtest, computed in JavaScript from the events: the edge's closure,
// one event after the other, and plain counting.
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import type { Score } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findForcedScore, sandboxForced } from '#shared/core/telemetry/sandbox.ts'

export type ModelAlert = {
  deviceId: string
  sessionId: string
  action: 'REVIEW' | 'BLOCK'
  disposition: string
  riskScore: number
  raspScore: number
  createdAtMs: number
}

const actionNames = ['ALLOW', 'REVIEW', 'BLOCK'] as const
const decisions = ['REVIEW', 'BLOCK'] as const

export type ModelScorer = (event: AcceptedEvent) => Score

/** The edge's verdict on an event under a policy, including test devices of a sandbox. */
export function toModelScorer(policy: Policy): ModelScorer {
  const score = compilePolicy(policy)
  return (event) => {
    const { body, received_at: receivedAtMs, reasons, server_signals: server } = event
    const isForced = reasons.some(({ code }) => code === sandboxForced)
    const forced = isForced ? findForcedScore(body.device_id, policy.thresholds) : null
    const { sdk_version: sdkVersion, platform } = body.sdk_meta
    return forced ?? score(body.signals as Signals, { sdkVersion, platform, receivedAtMs }, server)
  }
}

type Counts = { before: number; after: number }
const noCounts = (): Counts => ({ before: 0, after: 0 })
const noChanges = () => ({ new: 0, gone: 0, stricter: 0, milder: 0, unchanged: 0 })
type Changes = ReturnType<typeof noChanges>

type Session = { events: { event: AcceptedEvent; next: Score }[] }

/** The parts of a report that do not depend on its computation. */
export function modelBacktest(
  events: readonly AcceptedEvent[],
  options: { policy: Policy; alerts: readonly ModelAlert[]; scoredBy: readonly Policy[] },
) {
  const scorer = toModelScorer(options.policy)
  const sessions = new Map<string, Session>()
  const matrix = Object.fromEntries(
    actionNames.map((from) => [from, Object.fromEntries(actionNames.map((to) => [to, 0]))]),
  )
  const different: string[] = []
  const again = new Map(options.scoredBy.map((one) => [toPolicyHash(one), toModelScorer(one)]))
  let recomputed = 0
  for (const event of events) {
    const next = scorer(event)
    matrix[event.rasp_action]![next.action]! += 1
    const key = JSON.stringify([event.body.device_id, event.body.session_id])
    const session = sessions.get(key) ?? { events: [] }
    session.events.push({ event, next })
    sessions.set(key, session)
    const same = again.get(event.policy_hash)?.(event)
    if (same === undefined) continue
    recomputed++
    if (same.score !== event.rasp_score || same.action !== event.rasp_action)
      different.push(event.event_id)
  }
  const found = countMoves([...sessions.values()], options.alerts)
  const correlated = options.alerts.filter((one) => one.riskScore > one.raspScore)
  return {
    events: events.length,
    sessions: [...sessions.values()].filter(isHeld).length,
    matrix,
    ...found,
    correlatedAlerts: correlated.length,
    moved_most: findMoved([...sessions.values()]),
    recomputed: { events: recomputed, different: different.length, first: different.sort() },
  }
}

const isHeld = ({ events }: Session) =>
  events.some(({ event, next }) => event.rasp_score > 0 || next.score > 0)

function countMoves(sessions: readonly Session[], alerts: readonly ModelAlert[]) {
  const all = noCounts()
  const byAction = { REVIEW: noCounts(), BLOCK: noCounts() }
  const changes = noChanges()
  const byPlatform: Record<string, Changes> = {}
  const byVersion: Record<string, Changes> = {}
  const byDisposition: Record<string, { before: number; lost: number; may_stay: number }> = {}
  const byFlag: Record<string, Changes> = {}
  let mayStay = 0
  let existAlready = 0
  for (const { events } of sessions) {
    const { device_id: deviceId, session_id: sessionId, sdk_meta: meta } = events[0]!.event.body
    const rank = (names: string[]) =>
      Math.max(...names.map((name) => actionNames.indexOf(name as 'ALLOW')))
    const from = rank(events.map(({ event }) => event.rasp_action))
    const to = rank(events.map(({ next }) => next.action))
    if (from === 0 && to === 0) continue
    const own = alerts.filter((one) => one.deviceId === deviceId && one.sessionId === sessionId)
    const isMore = (alert: ModelAlert | undefined) =>
      alert !== undefined && alert.riskScore > alert.raspScore
    const change = toChange(from, to)
    if (change === 'gone' && own.some(isMore)) mayStay++
    if (change === 'new' && own.length > 0) existAlready++
    byPlatform[meta.platform] ??= noChanges()
    byVersion[meta.sdk_version] ??= noChanges()
    for (const into of [changes, byPlatform[meta.platform]!, byVersion[meta.sdk_version]!]) {
      into[change]++
    }
    const isOld = change === 'gone' || change === 'milder'
    const flags = events.flatMap<string>(({ event, next }) => {
      const [decided, reasons] = isOld
        ? [event.rasp_action, event.reasons]
        : [next.action, next.reasons]
      return decided === 'ALLOW' ? [] : reasons.map(({ code }) => code)
    })
    for (const flag of change === 'unchanged' ? [] : new Set(flags)) {
      byFlag[flag] ??= noChanges()
      byFlag[flag][change]++
    }
    for (const action of decisions) {
      const before = events.some(({ event }) => event.rasp_action === action)
      const after = events.some(({ next }) => next.action === action)
      for (const into of [all, byAction[action]]) {
        if (before) into.before++
        if (after) into.after++
      }
      if (!before) continue
      const alert = own.find((one) => one.action === action)
      const name = alert?.disposition ?? 'NOT_STORED'
      byDisposition[name] ??= { before: 0, lost: 0, may_stay: 0 }
      byDisposition[name].before++
      if (change !== 'gone') continue
      byDisposition[name].lost++
      if (isMore(alert)) byDisposition[name].may_stay++
    }
  }
  return {
    alerts: all,
    by_action: byAction,
    changes,
    byPlatform,
    byVersion,
    byDisposition,
    byFlag,
    mayStay,
    existAlready,
  }
}

/** @param from the highest action before, 0 for ALLOW */
function toChange(from: number, to: number): keyof Changes {
  if (from === to) return 'unchanged'
  if (from === 0) return 'new'
  if (to === 0) return 'gone'
  return from < to ? 'stricter' : 'milder'
}

function findMoved(sessions: readonly Session[]) {
  return sessions
    .map(({ events }) => ({
      device_id: events[0]!.event.body.device_id,
      session_id: events[0]!.event.body.session_id,
      old_score: Math.max(...events.map(({ event }) => event.rasp_score)),
      new_score: Math.max(...events.map(({ next }) => next.score)),
    }))
    .filter((one) => one.old_score !== one.new_score)
    .sort(
      (a, b) =>
        Math.abs(b.new_score - b.old_score) - Math.abs(a.new_score - a.old_score) ||
        compareBytes(a.device_id, b.device_id) ||
        compareBytes(a.session_id, b.session_id),
    )
    .slice(0, 20)
}
