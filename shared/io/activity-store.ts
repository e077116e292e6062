/**
 * Reads what velocity rules need of a device's recent past, for a whole batch of events at once.
 * One query screens all their devices; only those that may trigger a rule are then read in detail.
 * It also tells a client's retry of bytes that had already been taken. The events must have been
 * inserted.
 */
import { hash } from 'node:crypto'
import {
  createWindowCount,
  type Screen,
  type Sightings,
  toScreen,
  type VelocityMetric,
} from '#shared/core/activity.ts'
import { type Counts, countKey } from '#shared/core/correlation.ts'
import { activityQueryMax, activitySightingsMax } from '#shared/core/limits.ts'
import type { VelocityRule } from '#shared/core/policy.ts'
import type { Clickhouse } from './clickhouse.ts'

/** An event whose device is asked about. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  eventId: string
  receivedAtMs: number
  /** The velocity rules of the policy it was scored by. */
  rules: readonly VelocityRule[]
}

export type Activity = {
  /** Counts as of the event; only those that exceed a rule's threshold are sure to be there. */
  counts: Counts
  /** When the same event was received before, in ms: then this one is a client's retry. */
  firstReceivedAtMs: number | null
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

async function countActivity(
  clickhouse: Clickhouse,
  subjects: readonly ActivitySubject[],
): Promise<Activity[]> {
  const asked = subjects.map((subject) => ({
    ...subject,
    deviceHash: toHash(subject.deviceId),
    eventHash: toHash(subject.eventId),
  }))
  const screen = toScreen(new Set(subjects.map((subject) => subject.rules)))
  const span = toSpan(subjects)
  const screened = await screenDevices(clickhouse, { asked, screen, span })
  const suspects = asked.filter((one) => screened.suspects.has(toKey(one)))
  const countsOf = await readSightings(clickhouse, { asked: suspects, screen, span })
  return asked.map((one) => {
    const firstMs = screened.firstSeen.get(`${toKey(one)} ${one.eventHash}`)
    return {
      counts: countsOf(one),
      firstReceivedAtMs: firstMs !== undefined && firstMs < one.receivedAtMs ? firstMs : null,
    }
  })
}

/** As ClickHouse computes `reinterpretAsUInt64(SHA256(text))`, in decimal. */
function toHash(text: string): string {
  return hash('sha256', text, 'buffer').readBigUInt64LE(0).toString()
}

type Asked = ActivitySubject & { deviceHash: string; eventHash: string }
type Span = { firstMs: number; lastMs: number }
type Question = { asked: readonly Asked[]; screen: Screen; span: Span }

const toKey = (of: { tenantId: string; deviceHash: string }): string =>
  `${of.tenantId} ${of.deviceHash}`

function toSpan(subjects: readonly ActivitySubject[]): Span {
  let firstMs = Number.POSITIVE_INFINITY
  let lastMs = Number.NEGATIVE_INFINITY
  for (const { receivedAtMs } of subjects) {
    if (receivedAtMs < firstMs) firstMs = receivedAtMs
    if (receivedAtMs > lastMs) lastMs = receivedAtMs
  }
  return { firstMs, lastMs }
}

const ofDevices = `tenant_id in {tenants:Array(String)} and device_hash in {devices:Array(UInt64)}
  and received_at <= fromUnixTimestamp64Milli({last:Int64}, 'UTC')`

function toParams({ asked, span }: Question): Record<string, unknown> {
  return {
    tenants: [...new Set(asked.map((one) => one.tenantId))],
    devices: [...new Set(asked.map((one) => one.deviceHash))].map(BigInt),
    last: span.lastMs,
  }
}

/**
 * One pass over the devices of a batch, answering little for each: what exceeds a threshold in a
 * window that is widened by the batch's own span, and which events were there twice.
 */
async function screenDevices(
  clickhouse: Clickhouse,
  question: Question,
): Promise<{ suspects: Set<string>; firstSeen: Map<string, number> }> {
  const { asked, screen, span } = question
  const conditions = screen.rules.map((rule, index) => toCondition(rule, `w${index}`))
  const windows = screen.rules.map((rule, index) => [
    `w${index}`,
    span.firstMs - rule.windowSeconds * 1000,
  ])
  const result = await clickhouse.query({
    query: `
      select
        tenant_id,
        toString(device_hash) as device,
        ${conditions.join(' or ') || 'false'} as suspect,
        groupUniqArrayIf(
          (toString(event_hash), toUnixTimestamp64Milli(received_at)),
          event_hash in {events:Array(UInt64)}
        ) as sightings,
        length(sightings) > length(arrayDistinct(sightings.1)) as retried
      from activity
      where ${ofDevices}
      group by tenant_id, device_hash
      having suspect or retried`,
    query_params: {
      ...toParams(question),
      ...Object.fromEntries(windows),
      events: asked.map((one) => BigInt(one.eventHash)),
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  const suspects = new Set<string>()
  const firstSeen = new Map<string, number>()
  type Row = [string, string, boolean, [string, number][], number]
  for (const [tenantId, deviceHash, suspect, sightings] of await result.json<Row>()) {
    const key = toKey({ tenantId, deviceHash })
    if (suspect) suspects.add(key)
    for (const [eventHash, atMs] of sightings) {
      const event = `${key} ${eventHash}`
      firstSeen.set(event, Math.min(atMs, firstSeen.get(event) ?? atMs))
    }
  }
  return { suspects, firstSeen }
}

/**
 * Whether a device may exceed a rule. Cheap before exact: users and accounts are counted apart,
 * though one that is both counts once.
 */
function toCondition(rule: Screen['rules'][number], window: string): string {
  const columns =
    rule.metric === 'sessions_per_device' ? ['session_hash'] : ['user_hash', 'account_hash']
  const recent = `received_at > fromUnixTimestamp64Milli({${window}:Int64}, 'UTC')`
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct =
    rule.threshold <= 100 ? `uniqUpToIf(${Math.max(1, rule.threshold)})` : 'uniqExactIf'
  const counts = columns.map((column) => `${distinct}(${column}, ${column} != 0 and ${recent})`)
  return `${counts.join(' + ')} > ${rule.threshold}`
}

/**
 * Reads when each session and user was seen on the suspects: of the time before the batch only the
 * last moment matters, since every window ends within the batch.
 * @returns a function from an asked event to its counts
 */
async function readSightings(
  clickhouse: Clickhouse,
  question: Question,
): Promise<(of: Asked) => Counts> {
  if (question.asked.length === 0) return () => new Map()
  const { screen, span } = question
  const { sessions_per_device: sessionSeconds, users_per_device: userSeconds } =
    screen.widestSeconds
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(device_hash), metric, groupArray((before, within))
      from (
        select
          tenant_id, device_hash, metric, subject,
          maxIf(at, at <= {first:Int64}) as before,
          groupUniqArrayIf(at, at > {first:Int64}) as within
        from (
          select
            tenant_id, device_hash, toUnixTimestamp64Milli(received_at) as at,
            arrayJoin([
              ('sessions_per_device', session_hash, {sessions_from:Int64}),
              ('users_per_device', user_hash, {users_from:Int64}),
              ('users_per_device', account_hash, {users_from:Int64})
            ]) as seen,
            seen.1 as metric,
            seen.2 as subject
          from activity
          where ${ofDevices}
            and received_at > fromUnixTimestamp64Milli({from:Int64}, 'UTC')
            and subject != 0
            and at > seen.3
        )
        group by tenant_id, device_hash, metric, subject
        order by greatest(before, arrayMax(within)) desc
        limit {most:UInt32} by tenant_id, device_hash, metric
      )
      group by tenant_id, device_hash, metric`,
    query_params: {
      ...toParams(question),
      first: span.firstMs,
      sessions_from: span.firstMs - sessionSeconds * 1000,
      users_from: span.firstMs - userSeconds * 1000,
      from: span.firstMs - Math.max(sessionSeconds, userSeconds) * 1000,
      most: activitySightingsMax,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  type Row = [string, string, VelocityMetric, [number, number[]][]]
  const sightings = new Map<string, Sightings>()
  for (const [tenantId, deviceHash, metric, subjects] of await result.json<Row>()) {
    sightings.set(
      `${toKey({ tenantId, deviceHash })} ${metric}`,
      subjects.map(([before, within]) => (before === 0 ? within : [before, ...within])),
    )
  }
  return createCounting(sightings)
}

/** Counts of one device in one window are prepared once for all its events. */
function createCounting(sightings: ReadonlyMap<string, Sightings>): (of: Asked) => Counts {
  const prepared = new Map<string, (atMs: number) => number>()
  return (one) => {
    const counts = new Map<string, number>()
    for (const rule of one.rules) {
      const key = countKey(rule)
      const seen = sightings.get(`${toKey(one)} ${rule.metric}`)
      if (seen === undefined) continue
      const name = `${toKey(one)} ${key}`
      let count = prepared.get(name)
      if (count === undefined) {
        count = createWindowCount(seen, rule.windowSeconds)
        prepared.set(name, count)
      }
      counts.set(key, count(one.receivedAtMs))
    }
    return counts
  }
}
