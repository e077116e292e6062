/**
 * Reads the recent activity of the devices, users and sessions of a batch of events, for velocity
 * rules. One query screens all of them; only those that may trigger a rule are then read in detail.
 * It also finds a client's retry of bytes that were stored before. The events, and all before them
 * in the stream, must have been inserted; later events change nothing.
 *
 * The cost of a batch is bounded: a hot key, which has more rows than are read, is not screened;
 * only its latest rows are read.
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
import { toHash } from '#shared/core/velocity/key-hash.ts'
import { toVelocityScreen, type VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  isTooMuchToRead,
} from '#shared/io/clickhouse/clickhouse.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import {
  type ActivityBounds,
  type ActivityKey,
  type ActivitySpan,
  activityBounds,
  queryBounded,
  readActivityRows,
  readFewRows,
  readLatestRows,
  toActivityKey,
  toReadMax,
  toShardKey,
  toShortHash,
} from './activity-rows-store.ts'
import { queryScreen } from './activity-screen-store.ts'

/** An event whose activity is counted. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts alike. */
  userIds: readonly string[]
  eventId: string
  streamOffset: number
  receivedAtMs: number
  /** The velocity rules of the policy that scored it. */
  rules: readonly VelocityRule[]
}

export type Activity = {
  /** Counts as of the event; only those that exceed a rule's threshold are sure to be there. */
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Whether the same bytes were stored before: then this is a client's retry. */
  retry: boolean
}

export type ActivityStore = {
  /** @returns the activity of each subject, in their order */
  countActivity: (subjects: readonly ActivitySubject[]) => Promise<Activity[]>
}

export function createActivityStore(
  clickhouse: Clickhouse,
  bounds: ActivityBounds = activityBounds,
): ActivityStore {
  const store: Store = { clickhouse, bounds, hot: createHotKeys() }
  return {
    countActivity: async (subjects) => {
      const answers: Activity[] = []
      for (let at = 0; at < subjects.length; at += activityQueryMax) {
        const some = subjects.slice(at, at + activityQueryMax)
        answers.push(...(await countActivity(store, some)))
      }
      return answers
    },
  }
}

type Store = { clickhouse: Clickhouse; bounds: ActivityBounds; hot: HotKeys }

/** Hot keys found so far, by their hash: a query finds the same id of other tenants too. */
type HotKeys = { add: (key: ActivityKey) => void; has: (key: ActivityKey) => boolean }

function createHotKeys(): HotKeys {
  const keys = new LRUCache<string, true>({ max: hotKeysMax, ttl: hotKeyMs })
  const hashOf = (key: ActivityKey) => key.slice(key.indexOf(' ') + 1)
  return {
    add: (key) => keys.set(hashOf(key), true),
    has: (key) => keys.size > 0 && keys.has(hashOf(key)),
  }
}

/** A subject with the keys of its rows. */
type KeyedSubject = ActivitySubject & {
  eventHash: string
  keys: Record<ActivityKind, ActivityKey[]>
}

type SubjectBatch = {
  subjects: readonly KeyedSubject[]
  screen: VelocityScreen
  firstMs: number
  lastMs: number
  lastStreamOffset: number
}

async function countActivity(
  store: Store,
  unkeyed: readonly ActivitySubject[],
): Promise<Activity[]> {
  const subjects = unkeyed.map(toKeyedSubject)
  const screen = toVelocityScreen(new Set(subjects.map((subject) => subject.rules)))
  const firstMs = Math.min(...subjects.map((subject) => subject.receivedAtMs))
  const lastMs = Math.max(...subjects.map((subject) => subject.receivedAtMs))
  const lastStreamOffset = Math.max(...subjects.map((subject) => subject.streamOffset))
  const batch: SubjectBatch = { subjects, screen, firstMs, lastMs, lastStreamOffset }
  const keys = listKeys(batch)
  const few = await findFewRows(store, keys, lastStreamOffset)
  const screened = await screenKeys(
    store,
    batch,
    keys.filter((key) => !few.read.has(key)),
  )
  const widest = Math.max(0, ...[...screen.values()].flat().map((limit) => limit.windowSeconds))
  const span = { lastStreamOffset, afterMs: firstMs - widest * 1000 }
  const counted = subjects.map(() => nothingCounted)
  addCounts(subjects, few.rows, counted)
  addSightings(subjects, few.rows, screened)
  for await (const rows of readInPieces(store, screened, span)) {
    addCounts(subjects, rows, counted)
    addSightings(subjects, rows, screened)
  }
  return subjects.map((one, index) => {
    const first = screened.firstSeen.get(`${one.keys.device[0]} ${one.eventHash}`)
    return { ...counted[index]!, retry: first !== undefined && first < one.streamOffset }
  })
}

type Counted = { counts: Map<string, number>; details: Map<string, Record<string, unknown>> }

/** The counts of nearly every event, shared by all of them. */
const nothingCounted: Counted = { counts: new Map(), details: new Map() }

/** Adds the counts of these rows; of several users of an event the highest count is used. */
function addCounts(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  counted: Counted[],
): void {
  const countOf = createCounting(subjects, rows)
  subjects.forEach((one, index) => {
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

/** Finds earlier sightings of the events in the rows of devices that were not screened. */
function addSightings(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
  { screened, firstSeen }: Screened,
): void {
  const firstIn = new Map<ActivityKey, Map<number, number>>()
  for (const { keys, eventHash } of subjects) {
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

/** By event, the first stream offset among the rows. */
function toFirsts(rows: readonly ActivityRow[]): Map<number, number> {
  const firsts = new Map<number, number>()
  for (const { event, streamOffset } of rows) {
    firsts.set(event, Math.min(streamOffset, firsts.get(event) ?? Number.POSITIVE_INFINITY))
  }
  return firsts
}

/** Reads the rows of all keys that may exceed a rule, in pieces that bound the memory. */
async function* readInPieces(
  { clickhouse, bounds: { rowsMax } }: Store,
  { suspects, hot }: Screened,
  span: ActivitySpan,
): AsyncGenerator<Map<ActivityKey, ActivityRow[]>> {
  const readLatest = (node: ClickhouseNode, [key]: ActivityKey[]) =>
    readLatestRows(node, key!, { ...span, rowsMax })
  const readPiece = (node: ClickhouseNode, keys: ActivityKey[]) =>
    readActivityRows(node, keys, span)
  let piece: ActivityKey[] = []
  let expected = 0
  for (const [key, rows] of suspects) {
    if (expected + rows > activityRowsInMemoryMax && piece.length > 0) {
      yield* await onNodesOf(clickhouse, piece, toShardKey, readPiece)
      piece = []
      expected = 0
    }
    piece.push(key)
    expected += rows
  }
  if (piece.length > 0) yield* await onNodesOf(clickhouse, piece, toShardKey, readPiece)
  for (const key of hot) yield* await onNodesOf(clickhouse, [key], toShardKey, readLatest)
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

type Screened = {
  /** Keys that were screened. */
  screened: Set<ActivityKey>
  /** Of these, the keys that may exceed a rule, with the number of their rows. */
  suspects: Map<ActivityKey, number>
  /** Hot keys: only their latest rows are read. */
  hot: Set<ActivityKey>
  /** The first stream offset of each event of the batch, by device and event. */
  firstSeen: Map<string, number>
}

/** The keys by which the rules of a batch count. */
function listKeys({ subjects, screen }: SubjectBatch): ActivityKey[] {
  const kinds = new Set<ActivityKind>(['device'])
  for (const metric of screen.keys()) kinds.add(metricSources[metric].kind)
  const keys = new Set<ActivityKey>()
  for (const one of subjects) {
    for (const kind of kinds) for (const key of one.keys[kind]) keys.add(key)
  }
  return [...keys]
}

/** Keys whose rows have all been read, and the rows; a key may have none. */
type FewRowsFound = { read: Set<ActivityKey>; rows: Map<ActivityKey, ActivityRow[]> }

/** Reads the rows of the keys of a small batch that have few rows; the others are screened. */
async function findFewRows(
  { clickhouse, bounds, hot }: Store,
  keys: readonly ActivityKey[],
  lastStreamOffset: number,
): Promise<FewRowsFound> {
  const few: FewRowsFound = { read: new Set(), rows: new Map() }
  const some = keys.filter((key) => !hot.has(key))
  if (some.length > bounds.fewKeys) return few
  try {
    const readOf = (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
      readFewRows(node, nodeKeys, {
        lastStreamOffset,
        rowsPerKey: bounds.fewRows,
        readMax: toReadMax(nodeKeys.length, bounds),
      })
    const found = await onNodesOf(clickhouse, some, toShardKey, readOf)
    for (const key of some) {
      const rows = found.flatMap((one) => one.get(key) ?? [])
      if (rows.length >= bounds.fewRows) continue
      few.read.add(key)
      few.rows.set(key, rows)
    }
  } catch (error) {
    if (!isTooMuchToRead(error)) throw error
  }
  return few
}

/** Finds, in one pass over many keys, those that may exceed a threshold, and repeated events. */
async function screenKeys(
  store: Store,
  batch: SubjectBatch,
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
  screened.screened = new Set(light)
  const eventHashes = new Set(batch.subjects.map((one) => one.eventHash))
  const { rowsMax } = store.bounds
  const foundHot = async (key: ActivityKey) => {
    store.hot.add(key)
    screened.hot.add(key)
    screened.screened.delete(key)
    return []
  }
  const screenOn = (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
    queryBounded(
      nodeKeys,
      (chunk, settings) => queryScreen(node, chunk, { ...batch, eventHashes, rowsMax, settings }),
      foundHot,
      store.bounds,
    )
  const found = await onNodesOf(store.clickhouse, light, toShardKey, screenOn)
  for (const [tenantId, keyHash, rows, suspect, sightings] of found.flat(2)) {
    const key = `${tenantId} ${keyHash}`
    const isHot = Number(rows) > store.bounds.rowsMax
    if (isHot) store.hot.add(key)
    // A row of another tenant with the same id is not of this batch.
    if (suspect && screened.screened.has(key)) {
      if (isHot) {
        screened.hot.add(key)
        screened.screened.delete(key)
      } else screened.suspects.set(key, Number(rows))
    }
    for (const [eventHash, streamOffset] of sightings) {
      const event = `${key} ${eventHash}`
      const known = screened.firstSeen.get(event) ?? Number.POSITIVE_INFINITY
      screened.firstSeen.set(event, Math.min(Number(streamOffset), known))
    }
  }
  return screened
}

/**
 * Counts by rules; the counts of a key by a rule are computed once for all its events.
 * @returns a function from a subject and a rule to its count, of several users the highest; null
 *   when none of its keys is among the rows
 */
function createCounting(
  subjects: readonly KeyedSubject[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
): (subject: KeyedSubject, rule: VelocityRule) => ActivityCount | null {
  const eventsOf = new Map<ActivityKey, KeyedSubject[]>()
  for (const one of subjects) {
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
      const moments = events.map(({ streamOffset, receivedAtMs: atMs, eventHash }) => {
        return { streamOffset, atMs, event: toShortHash(eventHash) }
      })
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
