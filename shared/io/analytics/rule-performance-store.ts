/**
 * Reads rule performance of a tenant: from dispositions how often each flag, reason and signal is
 * right, from labels how much fraud was caught. The same figures as the views of fraud teams, here
 * with a beginning in time.
 */
import { toPeriodParams } from '#shared/core/outcomes/outcome-counts.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type OutcomeQuestion,
  type Outcomes,
  readOutcomes,
} from '#shared/io/outcomes/outcome-store.ts'

/** How often one thing is right. Precision and lift are null where too little was judged. */
export type Precision = {
  /** A flag, a signal, or a reason with what it was seen from. */
  what: string
  alerts: number
  confirmed: number
  false_positive: number
  precision: number | null
  /** The true precision lies between these with 95 % confidence. */
  precision_low: number
  precision_high: number
  lift: number | null
}

export type RulePerformance = {
  alerts: number
  confirmed: number
  false_positive: number
  /** Of all alerts; null when nothing was judged. */
  base_precision: number | null
  flags: Precision[]
  reasons: Precision[]
  signals: Precision[]
  /** By labels, and by alerts that were judged. */
  outcomes: Outcomes
}

export type RulePerformanceStore = {
  /** Of the alerts that were raised, and the sessions that began, in the period of the question. */
  readRulePerformance: (question: OutcomeQuestion) => Promise<RulePerformance>
}

const queryMaxSeconds = 25
/** Of each kind, those with the most alerts. */
const rowsMax = 200

type Row = [kind: string, what: string, alerts: number, confirmed: number, falsePositive: number]

// An alert with ten reasons is ten rows of each kind at most; none counts it twice for one thing.
const rulePerformanceSql = `
  select kind, what, count(), countIf(disposition = 'CONFIRMED'),
    countIf(disposition = 'FALSE_POSITIVE')
  from (
    select
      disposition,
      arrayMap(
        evidence -> JSONExtract(evidence, 'signals', 'Array(String)'), reason_evidence
      ) as signals_of,
      arrayMap(
        (signals, evidence) -> arrayStringConcat(
          if(empty(signals), [JSONExtractString(evidence, 'metric')], arraySort(signals)), ' + '
        ),
        signals_of, reason_evidence
      ) as seen_from,
      arrayConcat(
        [('all', '')],
        arrayMap(code -> ('flag', toString(code)), arrayDistinct(reason_codes)),
        arrayMap(
          (code, from) -> ('reason', concat(code, if(from = '', '', ' by '), from)),
          reason_codes, seen_from
        ),
        arrayMap(signal -> ('signal', signal), arrayDistinct(arrayFlatten(signals_of)))
      ) as things
    from alerts_replica final
    where tenant_id = {tenant:String} and created_at >= fromUnixTimestamp64Milli({since:Int64})
      and created_at < fromUnixTimestamp64Milli({until:Int64})
  )
  array join things.1 as kind, things.2 as what
  group by kind, what
  order by count() desc, what
  limit {limit:UInt32} by kind`

export function createRulePerformanceStore(clickhouse: Clickhouse): RulePerformanceStore {
  return {
    readRulePerformance: async (question) => {
      const result = await clickhouse.query({
        query: rulePerformanceSql,
        query_params: {
          tenant: question.tenantId,
          limit: rowsMax,
          ...toPeriodParams(question),
        },
        clickhouse_settings: { max_execution_time: queryMaxSeconds },
        format: 'JSONCompactEachRow',
      })
      const rows = await result.json<Row>()
      const outcomes = await readOutcomes(clickhouse, question)
      const [, , alerts = 0, confirmed = 0, falsePositive = 0] =
        rows.find(([kind]) => kind === 'all') ?? []
      const base = confirmed + falsePositive === 0 ? null : confirmed / (confirmed + falsePositive)
      const of = (wanted: string) =>
        rows.filter(([kind]) => kind === wanted).map((row) => toPrecision(row, base))
      return {
        alerts,
        confirmed,
        false_positive: falsePositive,
        base_precision: base,
        flags: of('flag'),
        reasons: of('reason'),
        signals: of('signal'),
        outcomes,
      }
    },
  }
}

function toPrecision([, what, alerts, confirmed, refuted]: Row, base: number | null): Precision {
  const { rate: precision, low, high } = toRate(confirmed, confirmed + refuted)
  return {
    what,
    alerts,
    confirmed,
    false_positive: refuted,
    precision,
    precision_low: low,
    precision_high: high,
    lift: precision === null || !base ? null : precision / base,
  }
}
