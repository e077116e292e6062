/**
 * `di policy backtest`: runs a policy over the stored events. Progress goes to stderr, the report
 * to stdout. An interrupt also cancels it in the console and the engine.
 */
import { toVisible } from '#shared/core/base/visible-text.ts'
import type { NamedChanges } from '#shared/core/policies/session-changes.ts'
import { actions } from '#shared/core/scoring/score.ts'
import type { BacktestLine, BacktestProgress, BacktestResult } from '../../policies/backtest.ts'
import { command, toQuery } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toComparedOutcomes } from '../outcomes/counts-text.ts'
import { toTable, toTime } from '../tables.ts'
import { readPolicyFile } from './policy-file.ts'

export const backtest = command<{ since?: string }>(
  'backtest <slug> <file>',
  'run the policy in a file (- is stdin) over the stored events',
  [['--since <time>', 'leave out events that were received before']],
  async (context, [slug, file], { since }) => {
    const document = await readPolicyFile(context, file!)
    const path = `${toTenantPath(slug!)}/policy/backtest${toQuery({ since })}`
    context.out(await follow(context, path, document), toReportText)
  },
)

async function follow(
  context: CliContext,
  path: string,
  document: unknown,
): Promise<BacktestResult> {
  const isTerminal = process.stderr.isTTY === true
  const print = (text: string) =>
    process.stderr.write(isTerminal ? `\r\u001b[2K${text}` : text === '' ? '' : `${text}\n`)
  for await (const value of context.adminLines('POST', path, document)) {
    const line = value as BacktestLine
    if ('progress' in line) print(toProgressText(line.progress))
    else if ('report' in line) {
      print('')
      return line.report
    } else {
      print('')
      throw new CliError(
        `${line.problem.detail} (${line.problem.code}, ${line.problem.request_id})`,
      )
    }
  }
  throw new CliError('The response was cut off. Is the console still running?')
}

function toProgressText(progress: BacktestProgress): string {
  const { slices_done: done, slices, events_done: events, events: all, devices } = progress
  const upTo =
    devices === null
      ? ''
      : devices === 'test devices'
        ? ', test devices'
        : `, devices up to ${devices.to === null ? 'the last' : toVisible(devices.to)}`
  const seconds = (progress.elapsed_ms / 1000).toFixed(1)
  return `backtest: ${events} of ${all} events, ${done} of ${slices} slices${upTo}, ${seconds} s`
}

function toReportText(report: BacktestResult): string {
  const { alerts, correlated, recomputed, outcomes } = report
  const since = report.since === null ? '' : ` since ${toTime(report.since)}`
  const { name, policy_hash: policyHash } = report.policy
  const parts = [
    `${report.events} events${since} under ${toVisible(name)} (${policyHash.slice(0, 8)}), in ` +
      `${(report.duration_ms / 1000).toFixed(1)} s`,
    toMatrix(report),
    toTable(
      ['ALERTS', 'BEFORE', 'AFTER'],
      Object.entries({ all: alerts, ...report.by_action }).map(([name, { before, after }]) => [
        name,
        ...[before, after].map(String),
      ]),
    ),
    toDispositions(report),
    toComparedOutcomes({ ...outcomes, heads: ['BEFORE', 'AFTER'] }, outcomes),
    toChanges('SESSIONS', [{ name: 'all', ...report.changes }]),
    toChanges('PLATFORM', report.by_platform),
    toChanges('SDK', report.by_sdk_version),
    toChanges('FLAG', report.by_flag),
    `Alerts are those that the signals alone raise. What is known of a device or user raised ` +
      `${correlated.alerts} stored alerts: of the sessions gone ${correlated.may_stay} may keep ` +
      `theirs, and ${correlated.exist_already} of the new ones have one already.`,
    toTable(
      ['MOVED MOST', 'SESSION', 'FROM', 'TO'],
      report.moved_most.map((one) => [
        one.device_id,
        one.session_id,
        ...[one.old_score, one.new_score].map(String),
      ]),
    ),
    recomputed.different === 0
      ? `${recomputed.events} events score today as they were stored.`
      : `${recomputed.different} of ${recomputed.events} events do not score as they were stored: ` +
        `${recomputed.first.join(', ')}`,
    ...report.not_recomputed.map(
      (one) =>
        `${one.events} events were scored by the policy ${toVisible(one.policy_hash)}, ` +
        `${one.why === 'not_stored' ? 'which is not stored here' : 'one of too many'}: they were ` +
        'not scored by it again.',
    ),
  ]
  return parts.join('\n\n')
}

function toDispositions({ by_disposition: dispositions }: BacktestResult): string {
  const table = toTable(
    ['DISPOSITION', 'BEFORE', 'LOST', 'MAY STAY'],
    dispositions.map((one) => [one.name, ...[one.before, one.lost, one.may_stay].map(String)]),
  )
  if (!dispositions.some(({ name }) => name === 'NOT_STORED')) return table
  return (
    `${table}\nNOT_STORED: no alert of this session and action is stored. It was raised with ` +
    'another action, a list entry decided, or retention or erasure removed it.'
  )
}

function toMatrix({ matrix }: BacktestResult): string {
  return toTable(
    ['EVENTS', ...actions.map((action) => `TO ${action}`)],
    actions.map((from) => [from, ...actions.map((to) => String(matrix[from]![to]))]),
  )
}

/** Rows of a table on a terminal; `--json` prints all of them. */
const rowsShown = 12

/** Sessions by what a policy changes for them, under names. */
export function toChanges(what: string, changes: readonly NamedChanges[]): string {
  const rows = changes
    .slice(0, rowsShown)
    .map((one) => [
      one.name,
      ...[one.new, one.gone, one.stricter, one.milder, one.unchanged].map(String),
    ])
  const more = changes.length > rowsShown ? `\n... and ${changes.length - rowsShown} more` : ''
  return toTable([what, 'NEW', 'GONE', 'STRICTER', 'MILDER', 'UNCHANGED'], rows) + more
}
