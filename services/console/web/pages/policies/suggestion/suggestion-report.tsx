/** The report of a suggestion: what it would change and why, each beside the policy in force. */
import { Button } from '../../../components/button.tsx'
import { Empty } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { useExact } from '../../../components/time/time.tsx'
import type { RuleFloor, RuleGroup } from '../policy-document.ts'
import { Comparison, Deciles } from './comparison.tsx'
import { toCount } from './figures.ts'
import { Rules } from './rules.tsx'
import type { Report, Suggestion } from './suggestion-run.ts'

export function SuggestionReport({
  report,
  onDraft,
  onFloor,
  onGroup,
}: {
  report: Report
  onDraft: (document: unknown) => void
  onFloor: (floor: RuleFloor) => void
  onGroup: (group: RuleGroup) => void
}) {
  const exact = useExact()
  const { active, suggestion, refused } = report
  if (suggestion === null) return <TooLittle missing={refused?.missing ?? []} />
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

function TooLittle({ missing }: { missing: NonNullable<Report['refused']>['missing'] }) {
  return (
    <Empty title="Too little is known to suggest anything">
      <ul aria-label="What is missing" className="grid gap-1">
        {missing.map(({ what, have, need }) => (
          <li key={what}>
            {what}: {toCount(have)}, at least {toCount(need)} are needed
          </li>
        ))}
      </ul>
      <p>Label what turned out to be fraud and what is legitimate, or take more days.</p>
    </Empty>
  )
}

const warningTexts: Record<Suggestion['warnings'][number]['kind'], string> = {
  leak: 'May leak',
  separation: 'Separates',
  drift: 'Drifts',
  no_better: 'No better',
  few_newer: 'Few newer sessions',
}

function Warnings({ warnings }: Pick<Suggestion, 'warnings'>) {
  if (warnings.length === 0) return null
  return (
    <ul aria-label="Warnings" className="grid gap-1 rounded-md bg-warn-soft px-3 py-2 text-warn">
      {warnings.map(({ kind, feature, detail }) => (
        <li className="wrap-anywhere" key={`${kind} ${feature ?? ''}`}>
          <strong className="font-semibold">{warningTexts[kind]}</strong>
          {feature !== null && <code className="font-mono text-sm"> {feature}</code>}: {detail}
        </li>
      ))}
    </ul>
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
  useless: 'predicts nothing of its own',
  too_few: 'too few to say, but not more',
}

const weightColumns: Column<Weight>[] = [
  {
    id: 'feature',
    head: 'Signal',
    width: '16rem',
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
    width: '6rem',
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
    head: 'Legitimate',
    numeric: true,
    width: '6rem',
    cell: ({ support }) => toCount(support.legitimate),
  },
  {
    id: 'effect',
    head: 'Effect in log odds',
    width: '21rem',
    cell: ({ effect, why }) => toEffectText(effect, why),
  },
]

function toEffectText(effect: Weight['effect'], why: Weight['why']): string {
  if (effect === null) return whyTexts[why]
  const name = why === 'weighed' ? effect.log_odds.toFixed(2) : whyTexts[why]
  return `${name} (${effect.low.toFixed(2)} to ${effect.high.toFixed(2)})`
}

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
          minWidth="66rem"
          rowKey={({ feature }) => feature}
          rows={changed}
        />
      )}
      <p className="text-muted text-sm">
        {factor.toFixed(1)} points are one unit of log odds. Effects of few sessions are drawn
        towards 0; the true one is in the interval in 95 of 100 cases. {toCount(kept)} more keep
        their points: too few labelled sessions have them to say anything.
      </p>
    </div>
  )
}
