/**
 * `di rule-performance`: fraud caught and missed, precision of each rule. `di signals spikes`:
 * prevalence spikes of signals within one SDK version.
 */
import { type Answer, read } from './commands.ts'
import { percent, toCountsLines } from './outcomes/counts-text.ts'
import { type Column, toColumns, toTime } from './tables.ts'

type RulePerformance = Answer<'/tenants/{tenant_id}/rule-performance'>

export const rulePerformance = read(
  'rule-performance <slug>',
  'how much fraud is caught, and how often each flag, reason and signal is right',
  '/tenants/{tenant_id}/rule-performance',
  {
    options: [
      ['--since <time>', 'leave out alerts and sessions from before'],
      ['--until <time>', 'leave out alerts and sessions from this time on'],
    ],
    text: toRulePerformanceText,
  },
)

/** Of the group `signals`. */
export const spikes = read(
  'spikes <slug>',
  'signals whose prevalence spiked within one SDK version: mostly a bad release',
  '/tenants/{tenant_id}/prevalence-spikes',
  {
    options: [['--open', 'only those that are not over']],
    query: ({ open }: { open?: true }) => ({ open: open === true }),
    text: toSpikesText,
  },
)

function toRulePerformanceText(performance: RulePerformance): string {
  const { alerts, confirmed, false_positive: refuted, base_precision: base, since } = performance
  const judged = `${confirmed} confirmed, ${refuted} false positives`
  const from = since === null ? '' : ` since ${toTime(since)}`
  const title = `${alerts} alerts${from}: ${judged}, precision ${percent(base)}`
  const parts = [
    toColumns(columnsOf('FLAG'), performance.flags),
    toColumns(columnsOf('SIGNAL'), performance.signals),
    toColumns(columnsOf('REASON'), performance.reasons),
  ]
  return [title, toOutcomesText(performance.outcomes), ...parts].join('\n\n')
}

function toOutcomesText(outcomes: RulePerformance['outcomes']): string {
  const { labels, labels_without_session: unseen, as_of: asOf } = outcomes
  return [
    ...toCountsLines(outcomes),
    `${labels} labels, ${unseen} of them of no known session; as of ${asOf === null ? '-' : toTime(asOf)}`,
  ].join('\n')
}

const columnsOf = (name: string): readonly Column<RulePerformance['flags'][number]>[] => [
  [name, 'what'],
  ['ALERTS', 'alerts'],
  ['CONFIRMED', 'confirmed'],
  ['FALSE', 'false_positive'],
  ['PRECISION', ({ precision }) => percent(precision)],
  ['95 % RANGE', (one) => `${percent(one.precision_low)} to ${percent(one.precision_high)}`],
  ['LIFT', ({ lift }) => lift?.toFixed(2)],
]

type Spikes = Answer<'/tenants/{tenant_id}/prevalence-spikes'>

const spikeColumns: readonly Column<Spikes['data'][number]>[] = [
  ['SIGNAL', 'signal'],
  ['SDK', 'sdk_version'],
  ['PLATFORM', 'platform'],
  ['PREVALENCE', ({ share }) => percent(share)],
  ['EARLIER', ({ earlier_share: share }) => percent(share)],
  ['ELSEWHERE', ({ elsewhere_share: share }) => percent(share)],
  ['DEVICES', 'devices'],
  ['ALERTS', 'alerts'],
  ['SINCE', 'started_at'],
  ['OVER', 'ended_at'],
]

function toSpikesText({ checked_at: at, data }: Spikes): string {
  const checked = at === null ? 'Nothing was compared yet.' : `Compared ${toTime(at)}.`
  if (data.length === 0) return `No prevalence spikes. ${checked}`
  return toColumns(spikeColumns, data)
}
