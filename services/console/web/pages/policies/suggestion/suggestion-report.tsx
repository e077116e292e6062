/** The report of a suggestion: what it would change and why, each beside the policy in force. */
import { Button } from '../../../components/button.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { useExact } from '../../../components/time/time.tsx'
import type { RuleFloor, RuleGroup } from '../policy-document.ts'
import { Comparison, Deciles } from './comparison.tsx'
import { toCount } from './figures.ts'
import { TooLittle } from './missing.tsx'
import { Rules } from './rules.tsx'
import type { Report, Suggestion } from './suggestion-run.ts'
import { Warnings } from './warnings.tsx'

export function SuggestionReport({
  tenant,
  report,
  onDraft,
  onFloor,
  onGroup,
}: {
  tenant: string
  report: Report
  onDraft: (document: unknown) => void
  onFloor: (floor: RuleFloor) => void
  onGroup: (group: RuleGroup) => void
}) {
  const exact = useExact()
  const { active, suggestion } = report
  if (suggestion === null) return <TooLittle report={report} tenant={tenant} />
  const { newer_since: newerSince } = report
  const used = report.sessions - report.left_out
  const about =
    `${toCount(used)} sessions since ${exact(report.since)}, as of ` +
    `${exact(report.as_of)}, beside`
  const split =
    'Weights are learnt from the older and tested on the newer' +
    `${newerSince === null ? '' : `, from ${exact(newerSince)} on`}.`
  const leftOut =
    report.left_out === 0 ? '' : ` ${toCount(report.left_out)} sessions more are left out.`
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-5 p-4">
      <div className="flex flex-wrap items-start gap-3">
        <p className="min-w-60 flex-1 text-muted">
          {about} {active.name} (version {active.version}).{leftOut} {split}
        </p>
        <Button look="primary" onClick={() => onDraft(suggestion.policy)}>
          Take as draft
        </Button>
      </div>
      <Warnings warnings={suggestion.warnings} />
      <Totals suggestion={suggestion} />
      <Comparison suggestion={suggestion} />
      <Weights suggestion={suggestion} />
      <Deciles compared={suggestion.compared} />
      <Rules onFloor={onFloor} onGroup={onGroup} rules={suggestion.rules} />
    </div>
  )
}

type Total = Suggestion['totals']['older'] & { period: string; days: number }

function Totals({ suggestion: { totals, days } }: { suggestion: Suggestion }) {
  const rows: Total[] = [
    { period: 'Older', days: days.older, ...totals.older },
    { period: 'Newer', days: days.newer, ...totals.newer },
  ]
  const columns: Column<Total>[] = [
    { id: 'period', head: 'Sessions', cell: ({ period }) => period },
    { id: 'days', head: 'Days', numeric: true, cell: (one) => one.days.toFixed(1) },
    { id: 'fraud', head: 'Fraud', numeric: true, cell: ({ fraud }) => toCount(fraud) },
    {
      id: 'legitimate',
      head: 'Legitimate',
      numeric: true,
      cell: ({ legitimate }) => toCount(legitimate),
    },
    {
      id: 'unlabelled',
      head: 'Unlabelled',
      numeric: true,
      cell: ({ unlabelled }) => toCount(unlabelled),
    },
  ]
  return (
    <Table
      columns={columns}
      label="Sessions of the suggestion by period"
      minWidth="30rem"
      rowKey={({ period }) => period}
      rows={rows}
    />
  )
}

type Weight = Suggestion['weights'][number]

const whyTexts: Record<Weight['why'], string> = {
  weighed: '',
  useless: 'none',
  too_few: 'too few',
}

const weightColumns: Column<Weight>[] = [
  {
    id: 'feature',
    head: 'Signal',
    cell: ({ feature }) => (
      <span className="font-mono text-sm" title={feature}>
        {feature}
      </span>
    ),
  },
  { id: 'before', head: 'In force', numeric: true, width: '5rem', cell: ({ before }) => before },
  {
    id: 'after',
    head: 'Suggested',
    numeric: true,
    width: '5.5rem',
    cell: ({ after }) => <strong className="font-semibold">{after}</strong>,
  },
  {
    id: 'points',
    head: 'Range',
    numeric: true,
    width: '6.5rem',
    cell: ({ points }) => (points === null ? '' : `${points.low} to ${points.high}`),
  },
  {
    id: 'fraud',
    head: 'Fraud',
    numeric: true,
    width: '5rem',
    cell: ({ support }) => toCount(support.fraud),
  },
  {
    id: 'legitimate',
    head: 'Honest',
    numeric: true,
    width: '5rem',
    cell: ({ support }) => toCount(support.legitimate),
  },
  {
    id: 'effect',
    head: 'Effect in log odds',
    width: '13rem',
    cell: ({ effect, why }) => toEffectText(effect, why),
  },
]

const toLogOdds = (value: number): string => value.toFixed(2).replace('-', '−')

function toEffectText(effect: Weight['effect'], why: Weight['why']): string {
  if (effect === null) return whyTexts[why]
  const name = why === 'weighed' ? toLogOdds(effect.log_odds) : whyTexts[why]
  return `${name} (${toLogOdds(effect.low)} to ${toLogOdds(effect.high)})`
}

/** Flags are in capitals, signals have a category. */
const isVelocity = ({ feature }: Weight): boolean => / from \d+$/.test(feature)

function Weights({ suggestion: { weights, factor } }: { suggestion: Suggestion }) {
  const changed = weights.filter(({ before, after }) => before !== after)
  const kept = weights.filter(
    ({ why, before, after }) => why === 'too_few' && before > 0 && after === before,
  ).length
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">Points that change, and why</h3>
      {changed.length === 0 ? (
        <p className="text-muted">No signal changes its points.</p>
      ) : (
        <Table
          columns={weightColumns}
          heightClass="max-h-80"
          label="Points that change"
          minWidth="55rem"
          rowKey={({ feature }) => feature}
          rows={changed}
        />
      )}
      <p className="text-muted text-sm">
        Fraud and honest are labelled older sessions with the signal. One unit of log odds makes
        fraud 2.7 times as likely beside not fraud, and is {factor.toFixed(1)} points; the true
        effect is in the interval in 95 of 100 cases, and effects of few sessions are drawn towards
        0. “None”: there are enough sessions, and the signal predicts nothing of its own. “Too few”:
        there are not enough to say, and those that are there allow no more points. {toCount(kept)}{' '}
        other signals keep their points: too few labelled sessions have them.
        {changed.some(isVelocity) &&
          ' Velocity rules are named by their flag, “from” the points that they bring today.'}
      </p>
    </div>
  )
}
