/**
 * `di rule-performance`: precision and lift of each rule, from dispositions. `di signals spikes`:
 * prevalence spikes of signals within one SDK version.
 */
import type { Command } from 'commander'
import type { Precision, RulePerformance } from '#shared/io/analytics/rule-performance-store.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toTable, toTime } from './tables.ts'

type RulePerformanceResponse = RulePerformance & { since: string | null }
type Spike = {
  platform: string
  sdk_version: string
  signal: string
  started_at: string
  ended_at: string | null
  share: number
  earlier_share: number | null
  elsewhere_share: number | null
  devices: number
  alerts: number
}
type Spikes = { checked_at: string | null; data: Spike[] }

/** Adds the command `rule-performance`, and `spikes` to the group `signals`. */
export function registerRulePerformance(program: Command, context: CliContext): void {
  program
    .command('rule-performance <slug>')
    .description('how often each flag, reason and signal is right, from dispositions')
    .option('--since <time>', 'leave out alerts that were raised before')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { since }: { since?: string }) => {
      const query = since === undefined ? '' : `?${new URLSearchParams({ since })}`
      const path = `${toTenantPath(slug)}/rule-performance${query}`
      context.out(
        (await context.adminFetch('GET', path)) as RulePerformanceResponse,
        toRulePerformanceText,
      )
    })
  program.commands
    .find((command) => command.name() === 'signals')
    ?.command('spikes <slug>')
    .description('signals whose prevalence spiked within one SDK version: mostly a bad release')
    .option('--open', 'only those that are not over')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { open }: { open?: true }) => {
      const path = `${toTenantPath(slug)}/prevalence-spikes?open=${open === true}`
      context.out((await context.adminFetch('GET', path)) as Spikes, toSpikesText)
    })
}

const percent = (share: number | null): string =>
  share === null ? '-' : `${(100 * share).toFixed(1)} %`

function toRulePerformanceText(performance: RulePerformanceResponse): string {
  const { alerts, confirmed, false_positive: refuted, base_precision: base, since } = performance
  const judged = `${confirmed} confirmed, ${refuted} false positives`
  const from = since === null ? '' : ` since ${toTime(since)}`
  const title = `${alerts} alerts${from}: ${judged}, precision ${percent(base)}`
  const part = (name: string, rows: Precision[]) => toTable(headerOf(name), rows.map(toRow))
  const parts = [
    part('FLAG', performance.flags),
    part('SIGNAL', performance.signals),
    part('REASON', performance.reasons),
  ]
  return [title, ...parts].join('\n\n')
}

const headerOf = (name: string): string[] => [
  ...[name, 'ALERTS', 'CONFIRMED', 'FALSE', 'PRECISION', '95 % RANGE', 'LIFT'],
]

function toRow(one: Precision): string[] {
  const range = `${percent(one.precision_low)} to ${percent(one.precision_high)}`
  return [
    ...[one.what, one.alerts, one.confirmed, one.false_positive].map(String),
    ...[percent(one.precision), range, one.lift === null ? '-' : one.lift.toFixed(2)],
  ]
}

function toSpikesText({ checked_at: checkedAt, data }: Spikes): string {
  const checked =
    checkedAt === null ? 'Nothing was compared yet.' : `Compared ${toTime(checkedAt)}.`
  if (data.length === 0) return `No prevalence spikes. ${checked}`
  return toTable(
    [
      'SIGNAL',
      'SDK',
      'PLATFORM',
      'PREVALENCE',
      'EARLIER',
      'ELSEWHERE',
      'DEVICES',
      'ALERTS',
      'SINCE',
      'OVER',
    ],
    data.map((one) => [
      one.signal,
      one.sdk_version,
      one.platform,
      ...[percent(one.share), percent(one.earlier_share), percent(one.elsewhere_share)],
      ...[String(one.devices), String(one.alerts), toTime(one.started_at), toTime(one.ended_at)],
    ]),
  )
}
