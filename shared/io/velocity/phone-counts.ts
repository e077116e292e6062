/**
 * Counts the installs and the users of a phone, for velocity rules. A phone's installs are those up
 * to the event's own. The users of a phone of one install are those of the device.
 */
import type { PhoneLink } from '#shared/core/identity/decide-link.ts'
import type { PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import { type Policy, phoneMetrics, type VelocityRule } from '#shared/core/policies/policy.ts'
import { type ActivityRow, countRule } from '#shared/core/velocity/activity-counts.ts'
import { type Counts, countKey } from '#shared/core/velocity/correlation.ts'
import type { Clickhouse, ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import type { Phones } from '#shared/io/identity/phones.ts'
import {
  type ActivityKey,
  type ActivitySpan,
  activityBounds,
  queryBounded,
  readActivityRows,
  readLatestRows,
  toActivityKey,
  toShardKey,
} from './activity-rows-store.ts'

/** An event whose phone is counted. */
export type PhoneEvent = {
  tenantId: string
  streamOffset: number
  atMs: number
  velocity: readonly VelocityRule[]
  phone: PhoneFacts | null
}

/** By policy: of nearly all of them the same rules. */
const activityRules = new WeakMap<readonly VelocityRule[], readonly VelocityRule[]>()

/** The rules that are counted for an event's own keys, those of phones as rules of devices. */
export function toActivityRules({ velocity }: Pick<Policy, 'velocity'>): readonly VelocityRule[] {
  const known = activityRules.get(velocity)
  if (known !== undefined) return known
  const rules = velocity.some(isOfPhone)
    ? velocity.flatMap((rule) => {
        if (rule.metric === 'installs_per_phone') return []
        return [rule.metric === 'users_per_phone' ? toUsersOfDevice(rule) : rule]
      })
    : velocity
  activityRules.set(velocity, rules)
  return rules
}

const isOfPhone = ({ metric, weight }: VelocityRule) => phoneMetrics.includes(metric) && weight > 0
const toUsersOfDevice = <R extends VelocityRule>(rule: R): R => ({
  ...rule,
  metric: 'users_per_device',
})

/** The counts of an event, with those of its phone. */
export function withPhoneCounts(
  counts: Counts,
  { velocity }: Pick<Policy, 'velocity'>,
  ofPhone: Counts | null,
): Counts {
  const rules = velocity.filter(isOfPhone)
  if (rules.length === 0) return counts
  const all = new Map(counts)
  for (const rule of rules) {
    const ofDevice =
      rule.metric === 'users_per_phone' ? counts.get(countKey(toUsersOfDevice(rule))) : undefined
    const own = ofPhone?.get(countKey(rule)) ?? ofDevice
    if (own !== undefined) all.set(countKey(rule), own)
  }
  return all
}

/** @returns the counts of each event's phone; null where no rule asks or it is on none */
export async function countPhones(
  { clickhouse, phones }: { clickhouse: Clickhouse; phones: Pick<Phones, 'findLinks'> },
  events: readonly PhoneEvent[],
): Promise<(Counts | null)[]> {
  const counted = events.map((event) => {
    const rules = event.velocity.filter(isOfPhone)
    const link = event.phone?.link
    if (rules.length === 0 || link === undefined) return null
    return { ...event, rules, link, counts: new Map<string, number>() }
  })
  const asked = counted.filter((one) => one !== null)
  if (asked.length > 0) {
    await countInstalls(phones, asked)
    await countUsers(clickhouse, asked)
  }
  return counted.map((one) => one?.counts ?? null)
}

type Asked = PhoneEvent & {
  rules: VelocityRule[]
  link: PhoneLink
  counts: Map<string, number>
}

const rulesOf = ({ rules }: Asked, metric: VelocityRule['metric']) =>
  rules.filter((rule) => rule.metric === metric)

async function countInstalls(
  phones: Pick<Phones, 'findLinks'>,
  events: readonly Asked[],
): Promise<void> {
  const some = events.filter((one) => rulesOf(one, 'installs_per_phone').length > 0)
  const earlier = some.flatMap(({ tenantId, link }) =>
    link.installs.map((deviceId) => ({ tenantId, deviceId })),
  )
  const links = await phones.findLinks(earlier)
  const seen = links.map((link) => link?.receivedAtMs ?? null)
  let at = 0
  for (const one of some) {
    const { installs, receivedAtMs } = one.link
    const own = [...seen.slice(at, at + installs.length), receivedAtMs]
    at += installs.length
    for (const rule of rulesOf(one, 'installs_per_phone')) {
      const afterMs = one.atMs - rule.windowSeconds * 1_000
      const count = own.filter((seenMs) => seenMs !== null && seenMs > afterMs).length
      one.counts.set(countKey(rule), count)
    }
  }
}

async function countUsers(clickhouse: Clickhouse, events: readonly Asked[]): Promise<void> {
  const some = events.filter(
    (one) => one.link.installs.length > 0 && rulesOf(one, 'users_per_phone').length > 0,
  )
  if (some.length === 0) return
  const keysOf = ({ tenantId, link: { installs, deviceId } }: Asked) =>
    [...installs, deviceId].map((id) => toActivityKey(tenantId, 'device', id))
  const windows = some.flatMap((one) =>
    rulesOf(one, 'users_per_phone').map(({ windowSeconds }) => one.atMs - windowSeconds * 1_000),
  )
  const span = {
    lastStreamOffset: Math.max(...some.map(({ streamOffset }) => streamOffset)),
    afterMs: Math.min(...windows),
  }
  const rows = await readRows(clickhouse, [...new Set(some.flatMap(keysOf))], span)
  for (const one of some) {
    const own = keysOf(one).flatMap((key) => rows.get(key) ?? [])
    for (const rule of rulesOf(one, 'users_per_phone')) {
      const [found] = countRule(own, rule, [one])
      one.counts.set(countKey(rule), found!.count)
    }
  }
}

/** Of a device with very many events the latest count. */
async function readRows(
  clickhouse: Clickhouse,
  keys: readonly ActivityKey[],
  span: ActivitySpan,
): Promise<Map<ActivityKey, ActivityRow[]>> {
  const { rowsMax } = activityBounds
  const found = await onNodesOf(
    clickhouse,
    keys,
    toShardKey,
    (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
      queryBounded(
        nodeKeys,
        (some, settings) => readActivityRows(node, some, span, settings),
        (key) => readLatestRows(node, key, { ...span, rowsMax }),
      ),
  )
  return new Map(found.flat().flatMap((rows) => [...rows]))
}
