/**
 * Reads what velocity rules need of the recent past, for a whole batch of events at once: of their
 * devices, users and sessions. One query screens all of them; only those that may trigger a rule
 * are then read in detail. It also tells a client's retry of bytes that had already been taken. The
 * events, and all before them in the stream, must have been inserted; later ones may have been, and
 * change nothing.
 */
import type { Screen } from '#shared/core/activity.ts'
import { type Counts, countKey } from '#shared/core/correlation.ts'
import { activityQueryMax } from '#shared/core/limits.ts'
import {
  type ActivitySubject,
  oneThread,
  places,
  type Question,
  recent,
  rowsOfKeys,
  toAsked,
  toQuestion,
} from './activity-rows-store.ts'
import { readFlips, readSightings } from './activity-sightings-store.ts'
import type { Clickhouse } from './clickhouse.ts'

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

async function countActivity(
  clickhouse: Clickhouse,
  subjects: readonly ActivitySubject[],
): Promise<Activity[]> {
  const asked = subjects.map(toAsked)
  const question = toQuestion(asked)
  const { counted, flipping, firstSeen } = await screenKeys(clickhouse, question)
  const [countOf, flipsOf] = await Promise.all([
    readSightings(clickhouse, question, counted),
    readFlips(clickhouse, question, flipping),
  ])
  return asked.map((one) => {
    const counts = new Map<string, number>()
    const details = new Map<string, Record<string, unknown>>()
    for (const rule of one.rules) {
      const key = countKey(rule)
      if (rule.metric === 'signal_flips') {
        const flips = flipsOf(one, rule)
        if (flips === undefined || flips.signal === null) continue
        counts.set(key, flips.flips)
        details.set(key, { signal: flips.signal })
      } else {
        const count = countOf(one, rule)
        if (count !== undefined) counts.set(key, count)
      }
    }
    const first = firstSeen.get(`${one.keys.device[0]} ${one.eventHash}`)
    return { counts, details, retry: first !== undefined && first < one.position }
  })
}

type Screened = {
  /** Keys whose sightings are to be counted, and devices whose signals may flip. */
  counted: Set<string>
  flipping: Set<string>
  /** The first position of events asked about, by device and event. */
  firstSeen: Map<string, number>
}

/**
 * One pass over the keys of a batch, answering little for each: what exceeds a threshold in a
 * window that is widened by the batch's own span, and which events were there twice.
 */
async function screenKeys(clickhouse: Clickhouse, question: Question): Promise<Screened> {
  const { asked, screen, firstMs } = question
  const windows = screen.rules.map((rule, index) => [
    `w${index}`,
    firstMs - rule.windowSeconds * 1000,
  ])
  const conditions = { counted: ['false'], flipping: ['false'] }
  screen.rules.forEach((rule, index) => {
    const list = rule.metric === 'signal_flips' ? conditions.flipping : conditions.counted
    list.push(toCondition(rule, `w${index}`))
  })
  const result = await clickhouse.query({
    query: `
      select
        tenant_id,
        toString(key_hash) as key,
        ${conditions.counted.join(' or ')} as counted,
        ${conditions.flipping.join(' or ')} as flipping,
        groupUniqArrayIf(
          (toString(event_hash), position),
          session_hash != 0 and event_hash in {events:Array(UInt64)}
        ) as sightings,
        length(sightings) > length(arrayDistinct(sightings.1)) as retried
      from (${rowsOfKeys})
      group by tenant_id, key_hash
      having counted or flipping or retried`,
    query_params: {
      ...question.params,
      ...Object.fromEntries(windows),
      events: [...new Set(asked.map((one) => one.eventHash))].map(BigInt),
    },
    use_multipart_params_auto: true,
    clickhouse_settings: oneThread,
    format: 'JSONCompactEachRow',
  })
  const screened: Screened = { counted: new Set(), flipping: new Set(), firstSeen: new Map() }
  type Row = [string, string, boolean, boolean, [string, number | string][], number]
  for (const [tenantId, hash, counted, flipping, sightings] of await result.json<Row>()) {
    const key = `${tenantId} ${hash}`
    if (counted) screened.counted.add(key)
    if (flipping) screened.flipping.add(key)
    for (const [eventHash, position] of sightings) {
      const event = `${key} ${eventHash}`
      const known = screened.firstSeen.get(event) ?? Number.POSITIVE_INFINITY
      screened.firstSeen.set(event, Math.min(Number(position), known))
    }
  }
  return screened
}

/**
 * Whether a key may exceed a rule. Cheap before exact: users and accounts are counted apart, though
 * one that is both counts once; a signal that was both detected and clean may not have gone back.
 */
function toCondition({ metric, threshold }: Screen['rules'][number], window: string): string {
  if (metric === 'signal_flips') {
    const seen = (bits: string) => `groupBitOrIf(${bits}, ${recent(window)})`
    return `bitAnd(${seen('detected_bits')}, ${seen('clean_bits')}) != 0`
  }
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct = threshold <= 100 ? `uniqUpToIf(${Math.max(1, threshold)})` : 'uniqExactIf'
  const counts = places[metric].columns.map(
    (column) => `${distinct}(${column}, ${column} != 0 and ${recent(window)})`,
  )
  return `(${counts.join(' + ')}) > ${threshold}`
}
