/**
 * A device-intelligence service in memory, made of the pure core only: the real one must behave
 * identically. It can have a bug, so that tests can check that a checker finds it.
 */

import { toClientFields } from '#shared/core/devices/device-answer.ts'
import { toClient, toRank, toRisk as toSharedRisk } from '#shared/core/devices/device-history.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { VelocityMetric } from '#shared/core/policies/policy.ts'
import { type Action, toAction } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { toSignalBits } from '#shared/core/signals/watched-signals.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { differsFromEdge } from '#shared/core/velocity/edge-risk.ts'
import { countSignalFlips } from '#shared/core/velocity/signal-flips.ts'
import { toAlert, unchanged } from '../../../shared/core/alerts/alert.ts'
import type { Alert } from '../../../shared/core/alerts/alert-schema.ts'
import { decideAlert, toAlertRow } from '../../../shared/core/alerts/decide-alert.ts'
import { toEventId } from '../../../shared/core/base/ids.ts'
import { findTenant } from '../../../shared/core/telemetry/body-scan.ts'
import { correlate, countKey, findVelocity } from '../../../shared/core/velocity/correlation.ts'
import { findScoreMismatch } from '../../../shared/core/velocity/score-mismatch.ts'

export const bugs = [
  'loses_a_session',
  'loses_the_first_event_of_a_session',
  'loses_a_user',
  'shows_a_lower_score',
  'shows_another_action',
  'counts_a_session_twice',
  'loses_an_alert',
  'raises_a_needless_alert',
  'ignores_velocity',
  'sees_velocity_too_early',
  'counts_one_session_too_many',
  'counts_one_session_too_few',
  'ignores_flips',
  'blames_another_signal_for_flips',
  'ignores_devices_per_user',
  'ignores_score_mismatch',
  'misses_signals_that_are_there',
  'leaves_a_reason_out',
  'tells_of_a_later_event',
  'skips_a_seq',
  'miscounts_the_total',
  'lists_in_another_order',
  'misattributes_a_reason',
] as const
export type Bug = (typeof bugs)[number]

type Stored = {
  eventId: string
  atMs: number
  telemetry: Telemetry
  score: number
  action: Action
  flags: string[]
  /** The rank of its risk, and the codes of its reasons; set once it is decided. */
  rank: number
  riskFlags: string[]
}

export type ModelService = {
  /** Accepts a body at a time and answers as ingest does. */
  accept(body: Buffer, atMs: number): { status: number; json: unknown }
  /** Answers a GET of the REST API. */
  get(path: string): { status: number; json: unknown }
  alerts: Alert[]
}

/** @param bug its fault, once or wherever possible */
export function createModelService(tenantId: string, bug?: Bug): ModelService {
  const scorer = compilePolicy(defaultPolicy)
  const eventsOf = new Map<string, Stored[]>()
  const alerts: Alert[] = []
  let streamOffset = 0
  let bugsLeft = 1
  /** True once, for a bug with a single victim. */
  const strikes = (name: Bug, isVictim = true) => bug === name && isVictim && bugsLeft-- > 0

  /** True whenever it is the victim; the first that fits becomes the victim. */
  let victim: string | null = null
  const strikesAgain = (name: Bug, id: string, isVictim = true) => {
    if (bug === name && isVictim) victim ??= id
    return bug === name && victim === id
  }
  const ofKey = (kind: 'device' | 'user', id: string) => eventsOf.get(`${kind} ${id}`) ?? []
  const ofDevice = (deviceId: string) => ofKey('device', deviceId)

  /** Counts at an event that was just stored, over all events stored before it. */
  const countsOf = ({ body, received_at }: AcceptedEvent) => {
    const counts = new Map<string, number>()
    const details = new Map<string, Record<string, unknown>>()
    if (bug === 'ignores_velocity') return { counts, details }
    for (const rule of defaultPolicy.velocity) {
      const sinceMs = received_at - rule.windowSeconds * 1000
      const recent = (all: Stored[]) => all.filter((one) => one.atMs > sinceMs)
      const own = recent(ofDevice(body.device_id))
      const distinct = (idsOf: (one: Telemetry) => string[]) =>
        new Set(own.flatMap(({ telemetry }) => idsOf(telemetry))).size
      const users = usersOf(body).map((user) => recent(ofKey('user', user)))
      const count: Record<VelocityMetric, () => number> = {
        sessions_per_device: () => distinct((one) => [one.session_id]) + sessionsOff(bug),
        users_per_device: () => distinct(usersOf),
        platforms_per_device: () => distinct((one) => [one.sdk_meta.platform]),
        devices_per_session: () => 1,
        devices_per_user: () => {
          if (bug === 'ignores_devices_per_user') return 0
          const devices = users.map((all) => new Set(all.map((one) => one.telemetry.device_id)))
          return Math.max(0, ...devices.map((ids) => ids.size))
        },
        new_device_of_user: () => {
          const isNew = users.some((all) => {
            const here = all.filter((one) => one.telemetry.device_id === body.device_id)
            const firstMs = Math.min(...here.map((one) => one.atMs))
            return firstMs > received_at - 86_400_000 && all.some((one) => one.atMs < firstMs)
          })
          return isNew ? 1 : 0
        },
        // Its events come from no measured address.
        countries_per_user: () => 0,
        countries_per_device: () => 0,
        networks_per_device: () => 0,
        devices_per_network: () => 0,
        users_per_network: () => 0,
        impossible_travel: () => 0,
        installs_per_phone: () => 0,
        users_per_phone: () => 0,
        signal_flips: () => {
          const { flips, signal } = flipsOf(own)
          const blamed = bug === 'blames_another_signal_for_flips' ? 'root.jailbroken' : signal
          details.set(countKey(rule), { signal: blamed })
          return bug === 'ignores_flips' ? 0 : flips
        },
      }
      counts.set(countKey(rule), count[rule.metric]())
    }
    return { counts, details }
  }

  const toRisk = (event: AcceptedEvent) => {
    const { rasp_score: score, reasons, body } = event
    const { counts, details } = countsOf(event)
    const findings = findVelocity(defaultPolicy.velocity, counts, details)
    const mismatch = findScoreMismatch(body.scorer, score, defaultPolicy)
    if (mismatch !== null && bug !== 'ignores_score_mismatch') findings.push(mismatch)
    if (bug === 'misses_signals_that_are_there' && event.rasp_action !== 'ALLOW') {
      const evidence = { metric: 'categories_missing', count: 1, threshold: 0, window: '24h' }
      findings.push({ code: 'SIGNALS_MISSING', weight: 15, evidence })
    }
    const risk = correlate({ score, reasons }, findings, defaultPolicy)
    const less = correlate({ score, reasons }, findings.slice(1), defaultPolicy)
    const spared = risk.riskScore > less.riskScore && risk.action === less.action
    const isAlert = risk.action !== 'ALLOW'
    return strikes('leaves_a_reason_out', isAlert && spared) ? less : risk
  }

  const raise = (event: AcceptedEvent, stored: Stored) => {
    const needless = strikes('raises_a_needless_alert', event.rasp_action === 'ALLOW')
    const risk = toRisk(event)
    stored.rank = toRank(risk.riskScore, risk.action, differsFromEdge(event, risk))
    stored.riskFlags = risk.reasons.map(({ code }) => code)
    const candidate = decideAlert(event, needless ? { ...risk, action: 'REVIEW' } : risk)
    if (candidate === null) return
    const present = alerts.findIndex((alert) => alert.alert_id === candidate.alertId)
    if (present >= 0) {
      const { seq, disposition, created_at, ...facts } = alerts[present]!
      const isOther = JSON.stringify(facts.reasons) !== JSON.stringify(candidate.reasons)
      if (strikes('tells_of_a_later_event', isOther)) {
        const more = { seq, disposition, createdAt: new Date(created_at) }
        alerts[present] = toAlert({ ...toAlertRow(candidate, more), ...unchanged })
      }
      return
    }
    if (strikesAgain('loses_an_alert', candidate.alertId)) return
    if (strikes('misattributes_a_reason')) {
      candidate.reasons = candidate.reasons.map((reason) => ({ ...reason, code: 'TIME_SPOOFED' }))
    }
    const skipped = strikes('skips_a_seq', alerts.length > 2) ? 1 : 0
    const seq = (alerts.at(-1)?.seq ?? 0) + 1 + skipped
    // Strictly later than the previous one, as in the real service.
    const lastMs = alerts.length === 0 ? 0 : Date.parse(alerts.at(-1)!.created_at)
    const createdAt = new Date(Math.max(Math.floor(event.received_at), lastMs + 1))
    alerts.push(toAlert({ ...toAlertRow(candidate, { seq, createdAt }), ...unchanged }))
  }

  const accept: ModelService['accept'] = (body, atMs) => {
    const parsed = parseTelemetry(body, findTenant(body) ?? '')
    if (!parsed.ok) return { status: 400, json: parsed.errors }
    const { telemetry } = parsed
    const { score, action, reasons } = scorer(telemetry.signals, {
      sdkVersion: telemetry.sdk_meta.sdk_version,
      platform: telemetry.sdk_meta.platform,
      receivedAtMs: atMs,
    })
    const flags = reasons.map((reason) => reason.code)
    const eventId = toEventId(body)
    const json = {
      status: 'accepted',
      rasp_score: score,
      rasp_action: action,
      event_id: eventId,
      flags,
    }
    const own = ofDevice(telemetry.device_id)
    const isFirst = !own.some((one) => one.telemetry.session_id === telemetry.session_id)
    const isLost =
      strikesAgain('loses_a_session', telemetry.session_id) ||
      strikesAgain('loses_the_first_event_of_a_session', eventId, isFirst && atMs % 60_000 > 5_000)
    if (isLost) return { status: 200, json }
    const edge = { rank: toRank(score, action, false), riskFlags: flags }
    const stored: Stored = { eventId, atMs, telemetry, score, action, flags, ...edge }
    const keys = usersOf(telemetry).map((user) => `user ${user}`)
    for (const key of [`device ${telemetry.device_id}`, ...keys]) {
      eventsOf.set(key, [...(eventsOf.get(key) ?? []), stored])
    }
    streamOffset++
    // The same bytes again: decided when they first came.
    if (own.some((one) => one.eventId === eventId)) return { status: 200, json }
    raise(
      {
        event_id: eventId,
        tenant_id: tenantId,
        received_at: atMs,
        rasp_score: score,
        rasp_action: action,
        reasons,
        policy_version: 1,
        policy_hash: '',
        epoch: 1,
        streamOffset,
        body: telemetry,
      },
      stored,
    )
    return { status: 200, json }
  }

  const showDevice = (deviceId: string) => {
    const own = ofDevice(deviceId)
    if (own.length === 0) return { status: 404, json: null }
    const sessions = [...new Set(own.map((one) => one.telemetry.session_id))].map((id) => {
      const facts = own.filter((one) => one.telemetry.session_id === id)
      const highest = facts.reduce((most, one) => (one.score > most.score ? one : most))
      const lower = strikes('shows_a_lower_score', highest.score > 0) ? 1 : 0
      const other = strikes('shows_another_action', highest.action === 'BLOCK')
      return {
        session_id: id,
        rasp_action: other ? 'REVIEW' : toAction(highest.score, defaultPolicy.thresholds),
        rasp_score: highest.score - lower,
        flags: highest.flags,
        ...toShownRisk(facts),
        ...toClientFields(clientOf(highest)),
        connection: null,
        ...timesOf(facts, 'started_at'),
      }
    })
    sessions.sort((a, b) => (a.started_at < b.started_at ? 1 : -1))
    const usersSeenOn = [...new Set(own.flatMap((one) => usersOf(one.telemetry)))].sort()
    if (strikes('loses_a_user', usersSeenOn.length > 0)) usersSeenOn.pop()
    return {
      status: 200,
      json: {
        device_id: deviceId,
        ...timesOf(own, 'first_seen_at'),
        peak_rasp_score: Math.max(...own.map((one) => one.score)),
        risk_score: Math.max(...own.map((one) => toSharedRisk(one.rank).riskScore)),
        ...toClientFields(clientOf(own.at(-1)!)),
        // Its clients are on this machine: nothing is measured.
        connection: null,
        users_seen_on: usersSeenOn,
        sessions,
        sessions_total: sessions.length + (strikes('counts_a_session_twice') ? 1 : 0),
        sessions_cursor: null,
        install: null,
        phone: null,
        users_cursor: null,
      },
    }
  }

  const listAlerts = (query: URLSearchParams) => {
    const limit = Math.min(500, Number(query.get('limit') ?? 50))
    const matching = alerts.filter(
      (alert) =>
        isAsked(query.get('decision'), alert.decision.action) &&
        isAsked(query.get('disposition'), alert.disposition) &&
        isAsked(query.get('device_id'), alert.entity.device.device_id),
    )
    if (bug !== 'lists_in_another_order') matching.reverse()
    const from = Number(query.get('cursor') ?? 0)
    const data = matching.slice(from, from + limit)
    const next = from + data.length
    return {
      status: 200,
      json: {
        data,
        total: matching.length + (bug === 'miscounts_the_total' ? 1 : 0),
        limit,
        next_cursor: next < matching.length ? String(next) : null,
      },
    }
  }

  return {
    accept,
    alerts,
    get(path) {
      const url = new URL(path, 'http://model')
      const device = /^\/v1\/di\/devices\/(.+)$/.exec(url.pathname)?.[1]
      const answer =
        device === undefined ? listAlerts(url.searchParams) : showDevice(decodeURIComponent(device))
      // A copy, as after the transfer over HTTP.
      return { status: answer.status, json: JSON.parse(JSON.stringify(answer.json)) }
    },
  }
}

/** The events' highest risk, as a session shows it. */
function toShownRisk(facts: readonly Stored[]) {
  const byRisk = facts.toSorted(
    (a, b) => b.rank - a.rank || (a.riskFlags.join() < b.riskFlags.join() ? 1 : -1),
  )
  const { rank, riskFlags } = byRisk[0]!
  const { riskScore, action } = toSharedRisk(rank)
  return { risk_score: riskScore, action, risk_flags: riskFlags }
}

/** The simulated phones send no app and no model. */
const clientOf = ({ telemetry: { sdk_meta: meta } }: Stored) =>
  toClient([meta.platform, meta.sdk_version, '', ''])

function usersOf({ user_id, account_id }: Telemetry): string[] {
  return [...new Set([user_id, account_id].filter((id) => id !== undefined))]
}

/** Flips at the last of a device's events, in their order. */
function flipsOf(events: readonly Stored[]) {
  const sightings = events.map(({ eventId, atMs, telemetry }, streamOffset) => {
    return { event: eventId, streamOffset, atMs, ...toSignalBits(telemetry.signals) }
  })
  const last = sightings.slice(-1)
  return countSignalFlips(sightings, last, Number.MAX_SAFE_INTEGER)[0]!
}

/** The error of the session count. */
function sessionsOff(bug: Bug | undefined): number {
  if (bug === 'sees_velocity_too_early') return 15
  if (bug === 'counts_one_session_too_many') return 1
  return bug === 'counts_one_session_too_few' ? -1 : 0
}

const isAsked = (asked: string | null, value: string) => asked === null || asked === value

function timesOf<Name extends string>(
  facts: Stored[],
  first: Name,
): Record<Name | 'last_seen_at', string> {
  const times = facts.map((one) => one.atMs)
  return {
    [first]: new Date(Math.min(...times)).toISOString(),
    last_seen_at: new Date(Math.max(...times)).toISOString(),
  } as Record<Name | 'last_seen_at', string>
}
