/**
 * Reads a page of a timeline: each kind from its own store, bounded, and merged in one order. What
 * a store does not answer is named in the answer, and the rest is shown.
 */
import { toIso } from '#shared/core/base/instants.ts'
import {
  timelineAlertsMax,
  timelineDevicesMax,
  timelineSignalDevicesMax,
} from '#shared/core/base/limits/entities.ts'
import { toSignalChanges } from '#shared/core/devices/signal-changes.ts'
import {
  isBefore,
  mergeTimeline,
  type TimelineKind,
  type TimelinePosition,
  timelineKinds,
  toTimelineBound,
} from '#shared/core/devices/timeline.ts'
import type { TimelineEntry } from '#shared/core/devices/timeline-schema.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import type { SignalHistoryStore } from '#shared/io/devices/signal-history-store.ts'
import type { TimelineEvents } from '#shared/io/devices/timeline-events-store.ts'
import {
  hasOlderAlerts,
  listWork,
  type TimelineSubject,
  type WorkKind,
} from '#shared/io/devices/timeline-work-store.ts'
import type { UserStore } from '#shared/io/devices/user-store.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { TimelineAnswer } from './timeline-schemas.ts'

export type TimelineDeps = {
  postgres: Postgres
  timelineEvents: TimelineEvents
  signalHistory: SignalHistoryStore
  users: Pick<UserStore, 'listUserDevices'>
  phones: Pick<PhoneStore, 'readPhone'>
  log: Log
  nowMs: () => number
}

export type TimelineTarget = { kind: 'device' | 'user' | 'phone'; id: string }

export type TimelineRead = {
  tenantId: string
  target: TimelineTarget
  kinds: readonly TimelineKind[]
  fromMs: number
  toMs: number
  after: TimelinePosition | null
  limit: number
}

type Keyed = TimelineEntry & { atMs: number }
type Incomplete = TimelineAnswer['incomplete'][number]
/** Its devices, the latest first; null while they cannot be read. */
type Found = { subject: TimelineSubject; deviceIds: readonly string[] | null }

const ofTelemetry: readonly TimelineKind[] = ['event', 'signal']
/** After this time no further device's signals are read. */
const signalsMs = 5_000

/** @throws Problem phone_not_found */
export async function readTimeline(deps: TimelineDeps, read: TimelineRead) {
  const incomplete: Incomplete[] = []
  const needsDevices = read.kinds.some((kind) => ofTelemetry.includes(kind))
  const found = await findSubject(deps, read, needsDevices)
  const parts = await Promise.all(
    read.kinds.map(async (kind): Promise<Keyed[]> => {
      try {
        const { entries, partial } = await readKind(deps, read, found, kind)
        if (partial !== null) incomplete.push({ kind, state: 'partial', detail: partial })
        return entries.map((entry) => ({ ...entry, atMs: Date.parse(entry.at) }))
      } catch (error) {
        deps.log.warn({ err: toLoggable(error), kind }, 'a part of a timeline could not be read')
        incomplete.push({ kind, state: 'unavailable', detail: unavailableText })
        return []
      }
    }),
  )
  const { entries, next } = mergeTimeline(parts, read.limit)
  const rank = ({ kind }: Incomplete) => timelineKinds.indexOf(kind)
  return { entries, next, incomplete: incomplete.sort((a, b) => rank(a) - rank(b)) }
}

const unavailableText = 'It cannot be read at the moment.'

async function findSubject(
  deps: TimelineDeps,
  { tenantId, target: { kind, id } }: TimelineRead,
  needsDevices: boolean,
): Promise<Found> {
  if (kind === 'device') {
    return { subject: { kind: 'installs', deviceIds: [id], phoneId: null }, deviceIds: [id] }
  }
  const orNull = (error: unknown) => {
    if (error instanceof Problem && error.code !== 'unavailable') throw error
    deps.log.warn({ err: toLoggable(error) }, 'the devices of a timeline could not be read')
    return null
  }
  if (kind === 'user') {
    const limit = timelineDevicesMax + 1
    const devices = needsDevices
      ? await deps.users.listUserDevices({ tenantId, userId: id, limit, after: null }).catch(orNull)
      : []
    const deviceIds = devices?.map(({ deviceId }) => deviceId) ?? null
    return { subject: { kind: 'user', userId: id }, deviceIds }
  }
  const phone = await deps.phones
    .readPhone({ tenantId, phoneId: id })
    .then((known) => {
      if (known !== null) return known
      throw new Problem('phone_not_found', 'No install is on this phone.')
    })
    .catch(orNull)
  const installs = phone?.installs.toSorted((a, b) => b.lastSeenAtMs - a.lastSeenAtMs)
  const deviceIds = installs?.map(({ deviceId }) => deviceId) ?? null
  return { subject: { kind: 'installs', deviceIds: deviceIds ?? [], phoneId: id }, deviceIds }
}

type Part = { entries: TimelineEntry[]; partial: string | null }

function readKind(
  deps: TimelineDeps,
  read: TimelineRead,
  { subject, deviceIds }: Found,
  kind: TimelineKind,
): Promise<Part> {
  if (kind === 'event' || kind === 'signal') {
    if (deviceIds === null) throw new Error('the devices are not known')
    return kind === 'event' ? readEvents(deps, read, deviceIds) : readSignals(deps, read, deviceIds)
  }
  // Only its corrections name a phone; the rest is found by its installs.
  if (deviceIds === null && subject.kind === 'installs' && kind !== 'correction') {
    throw new Error('the installs are not known')
  }
  return readWork(deps, read, subject, kind)
}

async function readEvents(
  deps: TimelineDeps,
  read: TimelineRead,
  deviceIds: readonly string[],
): Promise<Part> {
  const { tenantId, target, fromMs } = read
  const events = await deps.timelineEvents.listTimelineEvents({
    tenantId,
    deviceIds,
    userId: target.kind === 'user' ? target.id : undefined,
    fromMs,
    bound: toTimelineBound('event', read),
    limit: read.limit + 1,
  })
  const entries = events.map((event): TimelineEntry => {
    const { riskScore, action, reasons } = event.decided
    return {
      kind: 'event',
      id: event.eventId,
      at: toIso(event.receivedAtMs),
      device_id: event.deviceId,
      session_id: event.sessionId,
      user_id: event.userId ?? event.accountId,
      action,
      risk_score: riskScore,
      rasp_score: event.raspScore,
      flags: reasons.map(({ code }) => code),
    }
  })
  const isCut = deviceIds.length > timelineDevicesMax
  return { entries, partial: isCut ? toLatestText(timelineDevicesMax, 'Events') : null }
}

const toLatestText = (devices: number, what: string) =>
  `${what} are those of the ${devices.toLocaleString('en')} devices that were seen last.`

async function readSignals(
  deps: TimelineDeps,
  read: TimelineRead,
  deviceIds: readonly string[],
): Promise<Part> {
  const bound = toTimelineBound('signal', read)
  const entries: TimelineEntry[] = []
  const startedMs = deps.nowMs()
  let devices = 0
  let isCut = false
  for (const deviceId of deviceIds.slice(0, timelineSignalDevicesMax)) {
    if (devices > 0 && deps.nowMs() - startedMs > signalsMs) break
    const history = await deps.signalHistory.readSignalHistory({
      tenantId: read.tenantId,
      deviceId,
    })
    const { changes, total } = toSignalChanges(history.spans, history.events)
    devices += 1
    isCut ||= !history.complete || total > changes.length
    for (const { atMs, signal, change, eventId, sessionId } of changes) {
      const id = `${eventId} ${signal} ${change}`
      if (atMs < read.fromMs || !isBefore(bound, { atMs, id })) continue
      const facts = { device_id: deviceId, session_id: sessionId, event_id: eventId }
      entries.push({ kind: 'signal', id, at: toIso(atMs), ...facts, signal, change })
    }
  }
  if (devices < deviceIds.length) {
    return { entries, partial: toLatestText(devices, 'Changes of signals') }
  }
  return { entries, partial: isCut ? 'Only the latest changes of signals are shown.' : null }
}

async function readWork(
  { postgres }: TimelineDeps,
  read: TimelineRead,
  subject: TimelineSubject,
  kind: WorkKind,
): Promise<Part> {
  const { tenantId, fromMs, limit } = read
  const bound = toTimelineBound(kind, read)
  const query = { tenantId, subject, fromMs, bound, limit: limit + 1 }
  const [entries, isCut] = await Promise.all([
    listWork(postgres, kind, query),
    ofAlerts.includes(kind) && hasOlderAlerts(postgres, query),
  ])
  const newest = timelineAlertsMax.toLocaleString('en')
  return { entries, partial: isCut ? `It is that of the newest ${newest} alerts.` : null }
}

/** What people and webhooks did with alerts. */
const ofAlerts: readonly WorkKind[] = [
  ...(['delivery', 'assignment', 'note', 'case_note', 'disposition'] as const),
]
