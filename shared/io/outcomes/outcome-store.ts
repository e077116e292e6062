/**
 * Reads what turned out to be fraud of a tenant's sessions: how much was caught and missed, which
 * honest users were harmed, and the money. A session is caught, or harmed, when one of its events
 * is REVIEW or BLOCK, which raises an alert. Labels come late: `asOfMs` says when they were copied.
 */
import { toCountingLabelsSql, toLabelledSessionsSql } from '#shared/core/outcomes/coverage-sql.ts'
import { formatAmount } from '#shared/core/outcomes/money.ts'
import { type Rate, toRate } from '#shared/core/outcomes/wilson.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** Money of one currency, as decimal texts. */
export type Loss = { currency: string; lost: string; caught: string; missed: string }

/** Counts of sessions of which the outcome is known. */
export type OutcomeCounts = {
  fraud: number
  /** Of `fraud`, those with an alert. */
  caught: number
  missed: number
  recall: Rate
  honest: number
  /** Of `honest`, those with an alert. */
  harmed: number
  /** Users and accounts of these. */
  harmed_users: number
  harmed_share: Rate
  losses: Loss[]
}

/**
 * The sessions that have a flag, of all whose outcome is known: `fraud` is what it caught, and
 * `honest` whom it hit, whatever the policy made of it.
 */
export type FlagOutcomes = {
  flag: string
  fraud: number
  recall: Rate
  honest: number
  honest_share: Rate
  losses: Omit<Loss, 'caught' | 'missed'>[]
}

export type Outcomes = OutcomeCounts & {
  /** Null when nothing was copied yet. */
  as_of: string | null
  /** Labels that count, and those of them that cover no session that is known. */
  labels: number
  labels_without_session: number
  flags: FlagOutcomes[]
}

type Question = {
  tenantId: string
  /** Sessions that began before are left out; null for all. */
  sinceMs: number | null
}

type Row = {
  flag: string
  fraud: number
  caught: number
  honest: number
  harmed: number
  harmed_users: number
  lost: Record<string, string>
  lost_caught: Record<string, string>
}

const queryMaxSeconds = 25
const flagsMax = 200
const ofTenant = 'tenant_id = {tenant:String}'
const toTexts = (losses: string) => `mapApply((c, a) -> (toString(c), toString(a)), ${losses})`

// The flag '' stands for all sessions.
const countsSql = `
  select
    flag,
    countIf(outcome = 'fraud') as fraud,
    countIf(outcome = 'fraud' and has_alert) as caught,
    countIf(outcome = 'legitimate') as honest,
    countIf(outcome = 'legitimate' and has_alert) as harmed,
    length(groupUniqArrayArrayIf(users, outcome = 'legitimate' and has_alert)) as harmed_users,
    ${toTexts('sumMap(losses)')} as lost,
    ${toTexts('sumMapIf(losses, has_alert)')} as lost_caught
  from (
    select
      outcome, users, losses, bitAnd(bitShiftRight(risk.rank, 1), 3) > 0 as has_alert,
      arrayDistinct(arrayConcat([''], verdict.flags, risk.flags)) as flags
    from (${toLabelledSessionsSql(ofTenant)})
    where started_at >= fromUnixTimestamp64Milli({since:Int64})
  )
  array join flags as flag
  group by flag
  order by flag != '', fraud desc, honest desc, flag
  limit {limit:UInt32}`

const labelsSql = `
  select
    (select toUnixTimestamp64Milli(max(replicated_at)) from replication_rounds) as as_of_ms,
    count() as labels,
    countIf(label_id not in (
      select arrayJoin(label_ids) from (${toLabelledSessionsSql(ofTenant)})
    )) as without_session
  from (${toCountingLabelsSql(ofTenant)})`

export async function readOutcomes(
  clickhouse: Clickhouse,
  { tenantId, sinceMs }: Question,
): Promise<Outcomes> {
  const ask = async <One>(query: string): Promise<One[]> => {
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, since: sinceMs ?? 0, limit: flagsMax + 1 },
      clickhouse_settings: { max_execution_time: queryMaxSeconds },
      format: 'JSONEachRow',
    })
    return result.json<One>()
  }
  const [rows, [of]] = await Promise.all([
    ask<Row>(countsSql),
    ask<{ as_of_ms: number | null; labels: number; without_session: number }>(labelsSql),
  ])
  const [all, ...flags] = rows[0]?.flag === '' ? rows : [none]
  const asOfMs = of?.as_of_ms ?? 0
  return {
    as_of: asOfMs === 0 ? null : new Date(asOfMs).toISOString(),
    labels: of?.labels ?? 0,
    labels_without_session: of?.without_session ?? 0,
    ...toCounts(all!),
    flags: flags.map((row) => ({
      flag: row.flag,
      fraud: row.fraud,
      recall: toRate(row.fraud, all!.fraud),
      honest: row.honest,
      honest_share: toRate(row.honest, all!.honest),
      losses: toLosses(row).map(({ currency, lost }) => ({ currency, lost })),
    })),
  }
}

const none: Row = {
  flag: '',
  fraud: 0,
  caught: 0,
  honest: 0,
  harmed: 0,
  harmed_users: 0,
  lost: {},
  lost_caught: {},
}

function toCounts(row: Row): OutcomeCounts {
  const { fraud, caught, honest, harmed, harmed_users } = row
  return {
    fraud,
    caught,
    missed: fraud - caught,
    recall: toRate(caught, fraud),
    honest,
    harmed,
    harmed_users,
    harmed_share: toRate(harmed, honest),
    losses: toLosses(row),
  }
}

/** By the name of the currency: amounts of two cannot be compared. */
function toLosses({ lost, lost_caught: caught }: Row): Loss[] {
  return Object.keys(lost)
    .sort()
    .map((currency) => {
      const [all, seen] = [toUnits(lost[currency]), toUnits(caught[currency])]
      const show = (units: bigint) => formatAmount(toDecimal(units), currency)
      return { currency, lost: show(all), caught: show(seen), missed: show(all - seen) }
    })
}

const behindPoint = 4

/** A decimal text as ten-thousandths. */
function toUnits(text = '0'): bigint {
  const [whole = '0', behind = ''] = text.split('.')
  return BigInt(whole + behind.slice(0, behindPoint).padEnd(behindPoint, '0'))
}

function toDecimal(units: bigint): string {
  const digits = units.toString().padStart(behindPoint + 1, '0')
  return `${digits.slice(0, -behindPoint)}.${digits.slice(-behindPoint)}`
}
