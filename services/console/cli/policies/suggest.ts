/**
 * `di policy suggest`: a draft learnt from outcomes, with what it would change and why. It sets
 * nothing: the draft is for `policy backtest`, `policy shadow` and `policy set`, as any other.
 */
import { writeFileSync } from 'node:fs'
import { toVisible } from '#shared/core/base/visible-text.ts'
import {
  toGainText,
  toPercentText,
  toRateText,
  withRange,
} from '#shared/core/outcomes/figure-text.ts'
import type {
  AtPolicyThreshold,
  Compared,
  PolicyFigures,
} from '#shared/core/outcomes/suggest/compare-policies.ts'
import type { SimpleRule } from '#shared/core/outcomes/suggest/simple-rules.ts'
import type { SuggestedWeight, Suggestion } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import type { SuggestionLine, SuggestionReport } from '../../policies/suggestions.ts'
import { command, toQuery } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toTable, toTime } from '../tables.ts'

type Options = { days?: string; caps?: true; floors?: true; seed?: string; out?: string }

export const suggest = command<Options>(
  'suggest <slug>',
  'a draft learnt from labelled sessions, beside the policy in force; it sets nothing',
  [
    ['--days <n>', 'sessions of so many days (90)'],
    ['--caps', 'caps, groups, halving and strong evidence may go, so that points add up'],
    ['--floors', 'floors may go where enough is known of their signals'],
    ['--seed <n>', 'of the ranges (1)'],
    ['--out <file>', 'write the draft to a file, which `policy set` takes'],
  ],
  async (context, [slug], { days, caps, floors, seed, out }) => {
    const freed = { caps: caps && 'true', floors: floors && 'true' }
    const query = toQuery({ days, seed, ...freed })
    const report = await follow(context, `${toTenantPath(slug!)}/policy/suggestion${query}`)
    const { suggestion } = report
    if (suggestion !== null && out !== undefined) {
      writeFileSync(out, `${JSON.stringify(suggestion.policy, null, 2)}\n`)
    }
    context.out(report, () => toReportText(report, out ?? null))
    if (suggestion === null) throw new CliError('Nothing is suggested.')
  },
)

async function follow(context: CliContext, path: string): Promise<SuggestionReport> {
  const isTerminal = process.stderr.isTTY === true
  const print = (text: string) =>
    process.stderr.write(isTerminal ? `\r\u001b[2K${text}` : text === '' ? '' : `${text}\n`)
  for await (const value of context.adminLines('POST', path)) {
    const line = value as SuggestionLine
    if ('progress' in line) {
      print(`suggest: ${line.progress.slices_done} of ${line.progress.slices} slices read`)
      continue
    }
    print('')
    if ('report' in line) return line.report
    const { detail, code, request_id: requestId } = line.problem
    throw new CliError(`${detail} (${code}, ${requestId})`)
  }
  throw new CliError('The response was cut off. Is the console still running?')
}

function toReportText(report: SuggestionReport, file: string | null): string {
  const { active, suggestion } = report
  const left = report.left_out === 0 ? '' : `, ${report.left_out} more left out`
  const head =
    `${report.sessions - report.left_out} sessions since ${toTime(report.since)}${left}, as of ` +
    `${toTime(report.as_of)}, beside ${toVisible(active.name)} (version ${active.version})`
  if (suggestion === null) {
    const missing = report.refused!.missing.map(
      ({ what, have, need }) => `${what}: ${have}, at least ${need} are needed`,
    )
    return [head, `Too little is known to suggest anything:\n${missing.join('\n')}`].join('\n\n')
  }
  const document =
    file === null ? JSON.stringify(suggestion.policy, null, 2) : `The draft is in ${file}.`
  return [
    head,
    toTotalsText(report, suggestion),
    toComparisonText(suggestion),
    toWeightsText(suggestion),
    toDecilesText(suggestion.compared),
    toRulesText(suggestion.rules),
    toWarningsText(suggestion),
    document,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function toTotalsText(report: SuggestionReport, { totals, days }: Suggestion): string {
  const rows = (['older', 'newer'] as const).map((period) => {
    const { fraud, legitimate, unlabelled } = totals[period]
    return [period, days[period].toFixed(1), ...[fraud, legitimate, unlabelled].map(String)]
  })
  const newer =
    report.newer_since === null ? '' : ` Newer is from ${toTime(report.newer_since)} on.`
  return (
    `${toTable(['SESSIONS', 'DAYS', 'FRAUD', 'LEGITIMATE', 'UNLABELLED'], rows)}\n` +
    `Weights are learnt from the older and tested on the newer.${newer}`
  )
}

function toComparisonText({ compared, thresholds }: Suggestion): string {
  const { active, suggested } = compared
  const row = (name: string, of: (figures: PolicyFigures) => string) => [
    name,
    of(active),
    of(suggested),
  ]
  const currencies = active.review.losses.map(({ currency }) => currency)
  const at = (name: string, of: (figures: PolicyFigures) => AtPolicyThreshold) => [
    row(`${name}: sessions a day`, (one) => of(one).alerts_a_day.toFixed(1)),
    row(`${name}: recall`, (one) => toRateText(of(one).recall)),
    row(`${name}: precision`, (one) => toRateText(of(one).precision)),
    row(`${name}: fraud missed`, (one) => String(of(one).missed)),
    row(`${name}: honest sessions harmed`, (one) => String(of(one).harmed)),
    row(`${name}: honest users harmed`, (one) => String(of(one).harmed_users)),
    ...currencies.map((currency) =>
      row(`${name}: ${currency} caught`, (one) => toMoneyText(of(one), currency)),
    ),
  ]
  const table = toTable(
    ['NEWER SESSIONS', 'ACTIVE', 'SUGGESTED'],
    [
      row('equal alerts: recall', ({ at_equal_alerts: { recall, recall_range: range } }) => {
        return withRange(recall, range)
      }),
      row('equal alerts: precision', (one) => toPercentText(one.at_equal_alerts.precision)),
      ...at('review', (one) => one.review),
      ...at('block', (one) => one.block),
    ],
  )
  const { before, after } = thresholds
  const gained = compared.recall_gained
  const block =
    before.block === after.block
      ? ''
      : ` BLOCK is from ${after.block} instead of ${before.block}, so that no more sessions are ` +
        'blocked, and no more honest ones.'
  return (
    `${table}\nWith equal alerts the suggestion catches ` +
    `${(100 * Math.abs(gained)).toFixed(1)} points ${gained < 0 ? 'less' : 'more'} of the ` +
    `labelled fraud; 95 of 100 drawn samples are between ` +
    `${toGainText(compared.recall_gained_range)}. Precision is of labelled sessions.${block}`
  )
}

function toMoneyText({ losses }: AtPolicyThreshold, currency: string): string {
  const { caught, lost, missed } = losses.find((one) => one.currency === currency)!
  return `${caught} of ${lost}, ${missed} missed`
}

const whyText: Record<SuggestedWeight['why'], string> = {
  weighed: '',
  useless: 'predicts nothing of its own',
  too_few: 'too few to say, but not more',
}

function toWeightsText({ weights, factor }: Suggestion): string {
  const changed = weights.filter(({ before, after }) => before !== after)
  const kept = weights.filter(
    ({ why, before, after }) => why === 'too_few' && before > 0 && after === before,
  ).length
  const rows = changed.map(({ feature, before, after, why, support, effect, points }) => [
    toVisible(feature),
    `${before} -> ${after}`,
    points === null ? '' : `${points.low} to ${points.high}`,
    String(support.fraud),
    String(support.legitimate),
    toEffectText(effect, why),
  ])
  const header = ['SIGNAL', 'POINTS', 'RANGE', 'FRAUD', 'LEGITIMATE', 'EFFECT IN LOG ODDS']
  return (
    `${toTable(header, rows)}\n${factor.toFixed(1)} points are one unit of log odds. Effects of few ` +
    'sessions are drawn towards 0; the true one is in the interval in 95 of 100 cases. ' +
    `${kept} more keep their points: too few labelled sessions have them to say anything.`
  )
}

function toEffectText(effect: SuggestedWeight['effect'], why: SuggestedWeight['why']): string {
  if (effect === null) return whyText[why]
  const name = why === 'weighed' ? effect.log_odds.toFixed(2) : whyText[why]
  return `${name} (${effect.low.toFixed(2)} to ${effect.high.toFixed(2)})`
}

function toDecilesText({ active, suggested }: Compared): string {
  const rows = (name: string, { deciles }: PolicyFigures) =>
    deciles.map(({ from, to, sessions, expected, observed }) => [
      name,
      from === to ? String(from) : `${from} to ${to}`,
      String(sessions),
      toPercentText(expected),
      toRateText(observed),
    ])
  return toTable(
    ['CALIBRATION', 'SCORES', 'LABELLED', 'EXPECTED FRAUD', 'WAS FRAUD'],
    [...rows('active', active), ...rows('suggested', suggested)],
  )
}

function toRulesText(rules: readonly SimpleRule[]): string {
  if (rules.length === 0) return ''
  return toTable(
    ['THESE TOGETHER', 'OLDER', 'NEWER', 'FRAUD OF NEWER', 'A WEEK'],
    rules.map(({ features, found, tested }) => [
      features.map(toVisible).join(' + '),
      `${found.fraud} of ${found.labelled}`,
      `${tested.fraud} of ${tested.labelled}`,
      toRateText(tested.precision),
      tested.alerts_a_week.toFixed(1),
    ]),
  )
}

const toWarningsText = ({ warnings }: Suggestion): string =>
  warnings
    .map(({ kind, feature, detail }) => {
      const name = feature === null ? '' : ` ${toVisible(feature)}:`
      return `warning, ${kind}:${name} ${detail}`
    })
    .join('\n')
