/**
 * Counts the recent activity of devices, users and sessions for the velocity rules of a batch. One
 * query screens all keys; only keys that may trigger a rule are then read in detail. It also
 * detects a client's retry of bytes that were received before. The events and all events before
 * them in the stream must be stored; later events change nothing.
 *
 * The cost of a batch is bounded: of a hot key, which has more rows than the limit, only the latest
 * rows are read.
 */

import { LRUCache } from 'lru-cache'
import {
  activityQueryMax,
  activityRowsInMemoryMax,
  hotKeyMs,
  hotKeysMax,
} from '#shared/core/base/limits/history.ts'
import type { VelocityRule } from '#shared/core/policies/policy.ts'
import {
  type ActivityCount,
  type ActivityKind,
  type ActivityRow,
  countRule,
  metricSources,
} from '#shared/core/velocity/activity-counts.ts'
import { type Counts, countKey } from '#shared/core/velocity/correlation.ts'
import { toVelocityScreen, type VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import { type Clickhouse, isTooMuchToRead } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type ActivityBounds,
  type ActivityKey,
  type ActivitySpan,
  activityBounds,
  hashIn,
  ofKeys,
  queryBounded,
  readActivityRows,
  readFewRows,
  readLatestRows,
  toActivityKey,
  toHash,
  toReadMax,
  toShortHash,
} from './activity-rows-store.ts'
import { askScreen } from './activity-screen-store.ts'

/** An event whose activity is counted. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts. */
  userIds: readonly string[]
  eventId: string
  streamOffset: number
  receivedAtMs: number
  /** The velocity rules of the event's policy. */
  rules: readonly VelocityRule[]
}

export type Activity = {
  /** Counts at the event. Counts below a rule's threshold may be missing. */
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Whether the same bytes were received before: the event is a client's retry. */
  retry: boolean
}

type ActivityStore = {
  /** @returns the activity of each subject, in their order */
  countActivity: (subjects: readonly ActivitySubject[]) => Promise<Activity[]>
}

/** Creates the store of one ClickHouse. @param bounds overrides the limits, for tests */
export function createActivityStore(
  clickhouse: Clickhouse,
  bounds: ActivityBounds = activityBounds,
): ActivityStore {
  const store: Store = { clickhouse, bounds, hot: createHotKeys() }
  return {
    countActivity: async (subjects) => {
      const found: Activity[] = []
      for (let at = 0; at < subjects.length; at += activityQueryMax) {
        const some = subjects.slice(at, at + activityQueryMax)
        found.push(...(await countActivity(store, some)))
      }
      return found
    },
  }
}

type Store = { clickhouse: Clickhouse; bounds: ActivityBounds; hot: HotKeys }

/** Known hot keys, by hash: a query reads the same id of every tenant in it. */
type HotKeys = { add: (key: ActivityKey) => void; has: (key: ActivityKey) => boolean }

function createHotKeys(): HotKeys {
  const keys = new LRUCache<string, true>({ max: hotKeysMax, ttl: hotKeyMs })
  const hashOf = (key: ActivityKey) => key.slice(key.indexOf(' ') + 1)
  return {
    add: (key) => keys.set(hashOf(key), true),
    has: (key) => keys.size > 0 && keys.has(hashOf(key)),
  }
}

type KeyedSubject = ActivitySubject & {
  eventHash: string
  keys: Record<ActivityKind, ActivityKey[]>
}

type ScreenRequest = {
  keyed: readonly KeyedSubject[]
  screen: VelocityScreen
  firstMs: number
  lastStreamOffset: number
}

async function countActivity(
  store: Store,
  subjects: readonly ActivitySubject[],
): Promise<Activity[]> {
  const keyed = subjects.map(toKeyedSubject)
  const screen = toVelocityScreen(new Set(subjects.map((subject) => subject.rules)))
  const firstMs = Math.min(...subjects.map((subject) => subject.receivedAtMs))
  const lastStreamOffset = Math.max(...subjects.map((subject) => subject.streamOffset))
  const screened = await screenKeys(store, { keyed, screen, firstMs, lastStreamOffset })
  const widest = Math.max(0, ...[...screen.values()].flat().map((limit) => limit.windowSeconds))
  const span = { lastStreamOffset, afterMs: firstMs - widest * 1000 }
  const counted = keyed.map(() => nothingCounted)
  for await (const rows of readInPieces(store, screened, span)) {
    addCounts(keyed, rows, counted)
    addSightings(keyed, rows, screened)
  }
  return keyed.map((one, index) => {
    const first = screened.firstSeen.get(`${one.keys.device[0]} ${one.eventHash}`)
    return { ...counted[index]!, retry: first !== undefined && first < one.streamOffset }
  })
}

type Counted = { counts: Map<string, number>; details: Map<string, Record<string, unknown>> }

/** The counts of most events, shared by them. */
const nothingCounted: Counted = { counts: new Map(), details: new Map() }

/** Adds the counts of these rows. Of several users the highest count applies. */
function addCounts(
  keyed: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  counted: Counted[],
): void {
  const countOf = createCounting(keyed, rows)
  keyed.forEach((one, index) => {
    for (const rule of one.rules) {
      const found = countOf(one, rule)
      if (found === null) continue
      if (counted[index] === nothingCounted) {
        counted[index] = { counts: new Map(), details: new Map() }
      }
      const { counts, details } = counted[index]!
      const name = countKey(rule)
      if (found.count <= (counts.get(name) ?? -1)) continue
      counts.set(name, found.count)
      if (found.details !== null) details.set(name, found.details)
    }
  })
}

/** Finds earlier receipts of events in the rows of hot devices, which are not screened. */
function addSightings(
  keyed: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  { screened, firstSeen }: Screened,
): void {
  const firstIn = new Map<ActivityKey, Map<number, number>>()
  for (const { keys, eventHash } of keyed) {
    const [key] = keys.device as [ActivityKey]
    const own = rows.get(key)
    if (screened.has(key) || own === undefined) continue
    const firsts = firstIn.get(key) ?? toFirsts(own)
    firstIn.set(key, firsts)
    const first = firsts.get(toShortHash(eventHash)) ?? Number.POSITIVE_INFINITY
    const event = `${key} ${eventHash}`
    firstSeen.set(event, Math.min(first, firstSeen.get(event) ?? Number.POSITIVE_INFINITY))
  }
}

/** @returns the first stream offset of each event in the rows */
function toFirsts(rows: readonly ActivityRow[]): Map<number, number> {
  const firsts = new Map<number, number>()
  for (const { event, streamOffset } of rows) {
    firsts.set(event, Math.min(streamOffset, firsts.get(event) ?? Number.POSITIVE_INFINITY))
  }
  return firsts
}

/** Yields the rows of keys that may exceed a rule, in pieces of bounded memory. */
async function* readInPieces(
  { clickhouse, bounds: { rowsMax } }: Store,
  { suspects, hot }: Screened,
  span: ActivitySpan,
): AsyncGenerator<Map<ActivityKey, ActivityRow[]>> {
  let piece: ActivityKey[] = []
  let expected = 0
  for (const [key, rows] of suspects) {
    if (expected + rows > activityRowsInMemoryMax && piece.length > 0) {
      yield await readActivityRows(clickhouse, piece, span)
      piece = []
      expected = 0
    }
    piece.push(key)
    expected += rows
  }
  if (piece.length > 0) yield await readActivityRows(clickhouse, piece, span)
  for (const key of hot) yield await readLatestRows(clickhouse, key, { ...span, rowsMax })
}

function toKeyedSubject(subject: ActivitySubject): KeyedSubject {
  const { tenantId, deviceId, sessionId, userIds } = subject
  return {
    ...subject,
    eventHash: toHash(subject.eventId),
    keys: {
      device: [toActivityKey(tenantId, 'device', deviceId)],
      user: [...new Set(userIds)].map((id) => toActivityKey(tenantId, 'user', id)),
      session: [toActivityKey(tenantId, 'session', sessionId)],
    },
  }
}

/** The columns of a metric's subjects. */
const columns: Record<string, string> = {
  session: 'session_hash',
  user: 'user_hash',
  account: 'account_hash',
  platform: 'platform_hash',
  userDevice: 'user_device_hash',
  sessionDevice: 'session_device_hash',
}

type Screened = {
  /** Keys that may exceed a rule, with their number of rows. */
  suspects: Map<ActivityKey, number>
  /** Hot keys, which are not screened. */
  hot: Set<ActivityKey>
  /** The first stream offset of each event, by device and event. */
  firstSeen: Map<string, number>
}

/**
 * Screens the keys of a batch in one query: which may exceed a threshold, and which events repeat.
 */
async function screenKeys(store: Store, request: ScreenRequest): Promise<Screened> {
  const { keyed, screen } = request
  const kinds = new Set<ActivityKind>(['device'])
  for (const metric of screen.keys()) kinds.add(metricSources[metric].kind)
  const keys = new Set<ActivityKey>()
  for (const one of keyed) {
    for (const kind of kinds) for (const key of one.keys[kind]) keys.add(key)
  }
  return [...keys]
}

/** Keys of which all rows are known, and their rows; a key may have none. */
type FewRowsFound = { read: Set<ActivityKey>; rows: Map<ActivityKey, ActivityRow[]> }

/** Of a small batch, the rows of all keys that have few; the others are left to the screen. */
async function findFewRows(
  { clickhouse, bounds, hot }: Store,
  keys: readonly ActivityKey[],
  lastStreamOffset: number,
): Promise<FewRowsFound> {
  const few: FewRowsFound = { read: new Set(), rows: new Map() }
  const some = keys.filter((key) => !hot.has(key))
  if (some.length > bounds.fewKeys) return few
  try {
    const found = await readFewRows(clickhouse, some, {
      lastStreamOffset,
      rowsPerKey: bounds.fewRows,
      readMax: toReadMax(some.length, bounds),
    })
    for (const key of some) {
      const rows = found.get(key) ?? []
      if (rows.length >= bounds.fewRows) continue
      few.read.add(key)
      few.rows.set(key, rows)
    }
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
  }
  return few
}

/**
 * One pass over many keys, answering little for each: what may exceed a threshold, and which
 * events were there twice.
 */
async function screenKeys(
  store: Store,
  question: Question,
  keys: readonly ActivityKey[],
): Promise<Screened> {
  const screened: Screened = {
    screened: new Set(),
    suspects: new Map(),
    hot: new Set(),
    firstSeen: new Map(),
  }
  const light: ActivityKey[] = []
  for (const key of keys) {
    if (store.hot.has(key)) screened.hot.add(key)
    else light.push(key)
  }
  const found = await queryBounded(
    light,
    (some, settings) => queryScreen(store, some, { request, settings }),
    async (key) => {
      store.hot.add(key)
      screened.hot.add(key)
      screened.screened.delete(key)
      return []
    },
    store.bounds,
  )
  for (const [tenantId, keyHash, rows, suspect, sightings] of found.flat()) {
    const key = `${tenantId} ${keyHash}`
    const isHot = Number(rows) > store.bounds.rowsMax
    if (isHot) store.hot.add(key)
    // The query can return the same id of another tenant.
    if (suspect && keys.has(key)) {
      if (isHot) screened.hot.add(key)
      else screened.suspects.set(key, Number(rows))
    }
    for (const [eventHash, streamOffset] of sightings) {
      const event = `${key} ${eventHash}`
      const known = screened.firstSeen.get(event) ?? Number.POSITIVE_INFINITY
      screened.firstSeen.set(event, Math.min(Number(streamOffset), known))
    }
  }
  return screened
}

type ScreenRow = [
  tenantId: string,
  keyHash: string,
  rows: number | string,
  suspect: boolean | number,
  sightings: [eventHash: string, streamOffset: number | string][],
]

/** @returns keys that may exceed a rule, have repeated events, or have too many rows */
async function queryScreen(
  { clickhouse, bounds }: Store,
  keys: readonly ActivityKey[],
  { request, settings }: { request: ScreenRequest; settings: ClickHouseSettings },
): Promise<ScreenRow[]> {
  const { keyed, screen, firstMs, lastStreamOffset } = request
  const limits = [...screen].flatMap(([metric, own]) => own.map((limit) => ({ metric, ...limit })))
  const conditions = limits.map(({ metric, threshold }, index) =>
    toCondition(metric, threshold, `after_${index}`),
  )
  const windows = limits.map(({ windowSeconds }, index) => [
    `after_${index}`,
    firstMs - windowSeconds * 1000,
  ])
  const of = ofKeys(keys, lastStreamOffset)
  const events = new Set(keyed.map((one) => one.eventHash))
  const result = await clickhouse.query({
    query: `
      select
        tenant_id,
        toString(key_hash),
        count() as rows,
        ${conditions.join(' or ') || 'false'} as suspect,
        groupUniqArrayIf(
          (toString(packed_event_hash), stream_offset),
          session_hash != 0 and ${hashIn('packed_event_hash', events)}
        ) as sightings,
        length(sightings) > length(arrayDistinct(sightings.1)) as retried
      from ${of.text}
      group by tenant_id, key_hash
      having suspect or retried or rows > ${bounds.rowsMax}`,
    query_params: {
      ...of.params,
      ...Object.fromEntries(windows),
    },
    use_multipart_params_auto: true,
    clickhouse_settings: settings,
    format: 'JSONCompactEachRow',
  })
  return result.json<ScreenRow>()
}

/**
 * @param after the parameter with the start of the window
 * @returns SQL: whether a key may exceed a threshold. It never misses one but can be wrong: the
 *   window of the first event applies to the whole batch, users and accounts are counted
 *   separately, and a signal that was detected and clean may not have changed back.
 */
function toCondition(metric: VelocityMetric, threshold: number, after: string): string {
  const recent = `received_at_ms > {${after}:Int64}`
  if (metric === 'signal_flips') {
    const seen = (bits: string) => `groupBitOrIf(${bits}, ${recent})`
    return `bitAnd(${seen('detected_bits')}, ${seen('clean_bits')}) != 0`
  }
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct = threshold <= 100 ? `uniqUpToIf(${Math.max(1, threshold)})` : 'uniqExactIf'
  const counts = metricSources[metric].subjects.map((subject) => {
    const column = columns[subject]!
    return `${distinct}(${column}, ${column} != 0 and ${recent})`
  })
  return `(${counts.join(' + ')}) > ${threshold}`
}

/**
 * Counts each key and rule once for all events of the key.
 * @returns a function from an event and a rule to its count, the highest of several users; null
 *   when the rows have none of its keys
 */
function createCounting(
  keyed: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
): (of: KeyedSubject, rule: VelocityRule) => ActivityCount | null {
  const eventsOf = new Map<ActivityKey, KeyedSubject[]>()
  for (const one of keyed) {
    for (const key of Object.values(one.keys).flat()) {
      if (!rows.has(key)) continue
      const events = eventsOf.get(key)
      if (events === undefined) eventsOf.set(key, [one])
      else events.push(one)
    }
  }
  const counted = new Map<string, Map<KeyedSubject, ActivityCount>>()
  const countKeyOf = (key: ActivityKey, rule: VelocityRule): Map<KeyedSubject, ActivityCount> => {
    const name = `${key} ${countKey(rule)}`
    let counts = counted.get(name)
    if (counts === undefined) {
      const events = eventsOf.get(key)!
      const moments = events.map(({ streamOffset, receivedAtMs: atMs }) => ({ streamOffset, atMs }))
      const all = countRule(rows.get(key)!, rule, moments)
      counts = new Map(events.map((event, index) => [event, all[index]!]))
      counted.set(name, counts)
    }
    return counts
  }
  return (one, rule) => {
    let highest: ActivityCount | null = null
    for (const key of one.keys[metricSources[rule.metric].kind]) {
      if (!rows.has(key)) continue
      const found = countKeyOf(key, rule).get(one)!
      if (highest === null || found.count > highest.count) highest = found
    }
    return highest
  }
}
