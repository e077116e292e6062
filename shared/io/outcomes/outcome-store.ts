/**
 * Reads what turned out to be fraud of a tenant's sessions: how much was caught and missed, which
 * honest users were harmed, and the money, as `outcome-counts.ts` defines it. Labels come late:
 * `as_of` says when they were copied.
 */
import { toCountingLabelsSql } from '#shared/core/outcomes/coverage-sql.ts'
import {
  inOutcomePeriod,
  judgedSessionsSql,
  type Loss,
  noOutcomes,
  type OutcomeCounts,
  type OutcomeSums,
  toLosses,
  toOutcomeCounts,
  toOutcomeSumsSql,
  toPeriodParams,
} from '#shared/core/outcomes/outcome-counts.ts'
import { type Rate, toRate } from '#shared/core/outcomes/wilson.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

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

/** `as_of` is null when nothing was copied yet. */
export type OutcomesAsOf = OutcomeCounts & { as_of: string | null }

export type Outcomes = OutcomesAsOf & {
  /** Labels that count, and those of them that cover no session that is known. */
  labels: number
  labels_without_session: number
  flags: FlagOutcomes[]
}

export type OutcomeQuestion = {
  tenantId: string
  /** Sessions that began before are left out; null for all. */
  sinceMs: number | null
  /** So are sessions that began at this instant or later. */
  untilMs?: number | null
}

const queryMaxSeconds = 25
const flagsMax = 200

/** SQL: when labels and dispositions were copied, in ms since 1970. */
const asOfSql = '(select toUnixTimestamp64Milli(max(replicated_at)) from replication_rounds)'
const toAsOf = (ms: number | null | undefined): string | null => {
  return ms ? new Date(ms).toISOString() : null
}

// The flag '' stands for all sessions. Those out of the period are read for their labels alone.
const countsSql = `
  select flag, ${toOutcomeSumsSql('has_alert')} as sums,
    uniqExactArrayIf(sent_label_ids, flag = '') as labels_of_sessions
  from (
    select
      if(${inOutcomePeriod}, judged.outcome, '') as outcome, users, has_alert, sent_label_ids,
      if(${inOutcomePeriod}, judged.losses, mapFilter((c, a) -> false, judged.losses)) as losses,
      if(
        ${inOutcomePeriod}, arrayDistinct(arrayConcat([''], verdict.flags, risk.flags)), ['']
      ) as flags
    from (${judgedSessionsSql}) as judged
  )
  array join flags as flag
  group by flag
  order by flag != '', sums.fraud desc, sums.honest desc, flag
  limit {limit:UInt32}`

const labelsSql = `
  select ${asOfSql} as as_of_ms, count() as labels
  from (${toCountingLabelsSql('tenant_id = {tenant:String}')})`

const totalsSql = `
  select ${asOfSql} as as_of_ms, ${toOutcomeSumsSql('has_alert')} as sums
  from (${judgedSessionsSql})
  where ${inOutcomePeriod}`

type Row = { flag: string; sums: OutcomeSums; labels_of_sessions: number }

const createAsk =
  (clickhouse: Clickhouse, question: OutcomeQuestion) =>
  async <One>(query: string): Promise<One[]> => {
    const result = await clickhouse.query({
      query,
      query_params: {
        tenant: question.tenantId,
        limit: flagsMax + 1,
        ...toPeriodParams(question),
      },
      clickhouse_settings: { max_execution_time: queryMaxSeconds },
      format: 'JSONEachRow',
    })
    return result.json<One>()
  }

/** Reads the outcomes of a period, and what each flag made of them. */
export async function readOutcomes(
  clickhouse: Clickhouse,
  question: OutcomeQuestion,
): Promise<Outcomes> {
  const ask = createAsk(clickhouse, question)
  const [rows, [known]] = await Promise.all([
    ask<Row>(countsSql),
    ask<{ as_of_ms: number | null; labels: number }>(labelsSql),
  ])
  const [all, ...flags] = rows[0]?.flag === '' ? rows : [noRow]
  const labels = known?.labels ?? 0
  return {
    as_of: toAsOf(known?.as_of_ms),
    labels,
    // Both are read at about the same time, so a label may be in one of them alone.
    labels_without_session: Math.max(0, labels - all!.labels_of_sessions),
    ...toOutcomeCounts(all!.sums),
    flags: flags.map(({ flag, sums }) => ({
      flag,
      fraud: sums.fraud,
      recall: toRate(sums.fraud, all!.sums.fraud),
      honest: sums.honest,
      honest_share: toRate(sums.honest, all!.sums.honest),
      losses: toLosses(sums).map(({ currency, lost }) => ({ currency, lost })),
    })),
  }
}

/** Reads the outcomes of a period alone. */
export async function readOutcomeCounts(
  clickhouse: Clickhouse,
  question: OutcomeQuestion,
): Promise<OutcomesAsOf> {
  const ask = createAsk(clickhouse, question)
  const [row] = await ask<{ as_of_ms: number | null; sums: OutcomeSums }>(totalsSql)
  return { as_of: toAsOf(row?.as_of_ms), ...toOutcomeCounts(row?.sums ?? noOutcomes) }
}

/** Reads when labels and dispositions were copied; null when nothing was. */
export async function readAsOf(clickhouse: Clickhouse): Promise<string | null> {
  const result = await clickhouse.query({
    query: `select ${asOfSql} as as_of_ms`,
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ as_of_ms: number | null }>()
  return toAsOf(row?.as_of_ms)
}

const noRow: Row = { flag: '', sums: noOutcomes, labels_of_sessions: 0 }
