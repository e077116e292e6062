/**
 * Reads what velocity rules need of the recent past, for a whole batch of events at once: of their
 * devices, users and sessions. One query screens all of them; only those that may trigger a rule
 * are then read in detail. It also tells a client's retry of bytes that had already been taken. The
 * events, and all before them in the stream, must have been inserted; later ones may have been, and
 * change nothing.
 */
import { type Screen, toScreen } from '#shared/core/activity.ts'
import {
  type ActivityCount,
  type ActivityKind,
  type ActivityRow,
  countedBy,
  countRows,
} from '#shared/core/activity-counting.ts'
import { type Counts, countKey } from '#shared/core/correlation.ts'
import { activityQueryMax } from '#shared/core/limits.ts'
import type { VelocityMetric, VelocityRule } from '#shared/core/policy.ts'
import {
  type ActivityKey,
  hashesIn,
  ofKeys,
  readActivityRows,
  smallQuery,
  toActivityKey,
  toHash,
} from './activity-rows-store.ts'
import type { Clickhouse } from './clickhouse.ts'

/** An event that is asked about. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts alike. */
  userIds: readonly string[]
  eventId: string
  position: number
  receivedAtMs: number
  /** The velocity rules of the policy it was scored by. */
  rules: readonly VelocityRule[]
}

export type Activity = {
  /** Counts as of the event; only those that exceed a rule's threshold are sure to be there. */
  counts: Counts
  /** More evidence, by the key of the count. */
  details: ReadonlyMap<string, Record<string, unknown>>
  /** Whether the same bytes were taken before: then this is a client's retry. */
  retry: boolean
}

export type ActivityStore = {
  /** @returns one answer for each subject, in their order */
  countActivity: (subjects: readonly ActivitySubject[]) => Promise<Activity[]>
}

export function createActivityStore(clickhouse: Clickhouse): ActivityStore {
  return {
    countActivity: async (subjects) => {
      const answers: Activity[] = []
      for (let at = 0; at < subjects.length; at += activityQueryMax) {
        const some = subjects.slice(at, at + activityQueryMax)
        answers.push(...(await countActivity(clickhouse, some)))
      }
      return answers
    },
  }
}

type Asked = ActivitySubject & {
  eventHash: string
  keys: Record<ActivityKind, ActivityKey[]>
}

type Question = { asked: readonly Asked[]; screen: Screen; firstMs: number; lastPosition: number }

async function countActivity(
  clickhouse: Clickhouse,
  subjects: readonly ActivitySubject[],
): Promise<Activity[]> {
  const asked = subjects.map(toAsked)
  const screen = toScreen(new Set(subjects.map((subject) => subject.rules)))
  const firstMs = Math.min(...subjects.map((subject) => subject.receivedAtMs))
  const lastPosition = Math.max(...subjects.map((subject) => subject.position))
  const { suspects, firstSeen } = await screenKeys(clickhouse, {
    asked,
    screen,
    firstMs,
    lastPosition,
  })
  const widest = Math.max(0, ...[...screen.values()].map((one) => one.windowSeconds))
  const rows = await readActivityRows(clickhouse, suspects, {
    lastPosition,
    afterMs: firstMs - widest * 1000,
  })
  const countOf = createCounting(asked, rows)
  return asked.map((one) => {
    const counts = new Map<string, number>()
    const details = new Map<string, Record<string, unknown>>()
    for (const rule of one.rules) {
      const found = countOf(one, rule)
      if (found === null) continue
      counts.set(countKey(rule), found.count)
      if (found.details !== null) details.set(countKey(rule), found.details)
    }
    const first = firstSeen.get(`${one.keys.device[0]} ${one.eventHash}`)
    return { counts, details, retry: first !== undefined && first < one.position }
  })
}

function toAsked(subject: ActivitySubject): Asked {
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

/** How a metric's subjects are called in the table. */
const columns: Record<string, string> = {
  session: 'session_hash',
  user: 'user_hash',
  account: 'account_hash',
  platform: 'platform_hash',
  userDevice: 'user_device_hash',
  sessionDevice: 'session_device_hash',
}

type Screened = {
  /** Keys that may exceed a rule. */
  suspects: Set<ActivityKey>
  /** The first position of events asked about, by device and event. */
  firstSeen: Map<string, number>
}

/**
 * One pass over the keys of a batch, answering little for each: what may exceed a threshold, and
 * which events were there twice.
 */
async function screenKeys(
  clickhouse: Clickhouse,
  { asked, screen, firstMs, lastPosition }: Question,
): Promise<Screened> {
  const kinds = new Set<ActivityKind>(['device'])
  for (const metric of screen.keys()) kinds.add(countedBy[metric].kind)
  const keys = asked.flatMap((one) => [...kinds].flatMap((kind) => one.keys[kind]))
  const conditions = [...screen].map(([metric, { threshold }]) => toCondition(metric, threshold))
  const windows = [...screen].map(([metric, { windowSeconds }]) => [
    metric,
    firstMs - windowSeconds * 1000,
  ])
  const of = ofKeys(keys, lastPosition)
  const events = hashesIn('event_hash', new Set(asked.map((one) => one.eventHash)), 'events')
  const result = await clickhouse.query({
    query: `
      select
        tenant_id,
        toString(key_hash),
        ${conditions.join(' or ') || 'false'} as suspect,
        groupUniqArrayIf(
          (toString(event_hash), position),
          session_hash != 0 and ${events.condition}
        ) as sightings,
        length(sightings) > length(arrayDistinct(sightings.1)) as retried
      from activity
      where ${of.condition}
      group by tenant_id, key_hash
      having suspect or retried`,
    query_params: {
      ...of.params,
      ...events.params,
      ...Object.fromEntries(windows),
    },
    use_multipart_params_auto: true,
    clickhouse_settings: smallQuery,
    format: 'JSONCompactEachRow',
  })
  const screened: Screened = { suspects: new Set(), firstSeen: new Map() }
  type Row = [string, string, boolean | number, [string, number | string][], number]
  for (const [tenantId, keyHash, suspect, sightings] of await result.json<Row>()) {
    const key = `${tenantId} ${keyHash}`
    if (suspect) screened.suspects.add(key)
    for (const [eventHash, position] of sightings) {
      const event = `${key} ${eventHash}`
      const known = screened.firstSeen.get(event) ?? Number.POSITIVE_INFINITY
      screened.firstSeen.set(event, Math.min(Number(position), known))
    }
  }
  return screened
}

/**
 * Whether a key may exceed the rules of a metric. Cheap before exact: of several rules the widest
 * window and the least threshold; users and accounts apart, though one that is both counts once; a
 * signal that was both detected and clean, though it may not have gone back.
 */
function toCondition(metric: VelocityMetric, threshold: number): string {
  const recent = `received_at > fromUnixTimestamp64Milli({${metric}:Int64}, 'UTC')`
  if (metric === 'signal_flips') {
    const seen = (bits: string) => `groupBitOrIf(${bits}, ${recent})`
    return `bitAnd(${seen('detected_bits')}, ${seen('clean_bits')}) != 0`
  }
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct = threshold <= 100 ? `uniqUpToIf(${Math.max(1, threshold)})` : 'uniqExactIf'
  const counts = countedBy[metric].subjects.map((subject) => {
    const column = columns[subject]!
    return `${distinct}(${column}, ${column} != 0 and ${recent})`
  })
  return `(${counts.join(' + ')}) > ${threshold}`
}

/**
 * Counts of one key by one rule are made once for all its events.
 * @returns a function from an asked event and a rule to its count, of several users the highest;
 *   null when none of its keys is among the rows
 */
function createCounting(
  asked: readonly Asked[],
  rows: ReadonlyMap<ActivityKey, ActivityRow[]>,
): (of: Asked, rule: VelocityRule) => ActivityCount | null {
  const eventsOf = new Map<ActivityKey, Asked[]>()
  for (const one of asked) {
    for (const key of Object.values(one.keys).flat()) {
      if (!rows.has(key)) continue
      const events = eventsOf.get(key)
      if (events === undefined) eventsOf.set(key, [one])
      else events.push(one)
    }
  }
  const counted = new Map<string, Map<Asked, ActivityCount>>()
  const countKeyOf = (key: ActivityKey, rule: VelocityRule): Map<Asked, ActivityCount> => {
    const name = `${key} ${countKey(rule)}`
    let counts = counted.get(name)
    if (counts === undefined) {
      const events = eventsOf.get(key)!
      const moments = events.map(({ position, receivedAtMs: atMs }) => ({ position, atMs }))
      const all = countRows(rows.get(key)!, rule, moments)
      counts = new Map(events.map((event, index) => [event, all[index]!]))
      counted.set(name, counts)
    }
    return counts
  }
  return (one, rule) => {
    let highest: ActivityCount | null = null
    for (const key of one.keys[countedBy[rule.metric].kind]) {
      if (!rows.has(key)) continue
      const found = countKeyOf(key, rule).get(one)!
      if (highest === null || found.count > highest.count) highest = found
    }
    return highest
  }
}
