/** How the policy in force and the suggested one do on the same newer sessions. */
import {
  toAmountText,
  toGainText,
  toPercentText,
  toRateText,
  withRange,
} from '#shared/core/outcomes/figure-text.ts'
import { type Column, Table } from '../../../components/table.tsx'
import { type FigureGroup, type FigureRow, FiguresTable } from '../figures-table.tsx'
import { toCount } from './figures.ts'
import type { Suggestion } from './suggestion-run.ts'

type Compared = Suggestion['compared']
type Figures = Compared['active']
type AtThreshold = Figures['review']

function toGroups({ active, suggested, alerts }: Compared): FigureGroup[] {
  const row = (name: string, of: (figures: Figures) => string): FigureRow => {
    return { name, cells: [of(active), of(suggested)] }
  }
  const currencies = active.review.losses.map(({ currency }) => currency)
  const at = (of: (figures: Figures) => AtThreshold): FigureRow[] => [
    row('From score', (one) => (of(one).threshold === 101 ? 'never' : String(of(one).threshold))),
    row('Sessions a day', (one) => of(one).alerts_a_day.toFixed(1)),
    row('Recall', (one) => toRateText(of(one).recall)),
    row('Precision', (one) => toRateText(of(one).precision)),
    row('Fraud caught', (one) => toCount(of(one).caught)),
    row('Fraud missed', (one) => toCount(of(one).missed)),
    row('Honest sessions harmed', (one) => toCount(of(one).harmed)),
    row('Honest users harmed', (one) => toCount(of(one).harmed_users)),
    ...currencies.map((currency) =>
      row(`Money caught, ${currency}`, (one) => toMoney(of(one), currency)),
    ),
  ]
  return [
    {
      title: `If each raised ${toCount(alerts)} alerts`,
      rows: [
        row('Recall', ({ at_equal_alerts: { recall, recall_range: range } }) =>
          withRange(recall, range),
        ),
        row('Precision', (one) => toPercentText(one.at_equal_alerts.precision)),
      ],
    },
    { title: 'REVIEW or BLOCK', rows: at((one) => one.review) },
    { title: 'BLOCK', rows: at((one) => one.block) },
  ]
}

function toMoney({ losses }: AtThreshold, currency: string): string {
  const { caught, lost, missed } = losses.find((one) => one.currency === currency)!
  return `${toAmountText(caught)} of ${toAmountText(lost)}, ${toAmountText(missed)} missed`
}

export function Comparison({ suggestion: { compared, thresholds } }: { suggestion: Suggestion }) {
  const { before, after } = thresholds
  const gained = compared.recall_gained
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">On the same newer sessions</h3>
      <FiguresTable
        groups={toGroups(compared)}
        heads={['Newer sessions', 'In force', 'Suggested']}
        label="In force and suggested"
        minWidth="36rem"
      />
      <p className="text-muted text-sm">
        With {toCount(compared.alerts)} alerts each the suggestion catches{' '}
        {(100 * Math.abs(gained)).toFixed(1)} points {gained < 0 ? 'less' : 'more'} of the labelled
        fraud; 95 of 100 drawn samples are between {toGainText(compared.recall_gained_range)}.
        Recall is the share of the labelled fraud that gets an alert, precision the share of fraud
        among the labelled sessions with one.
        {before.block !== after.block &&
          ` BLOCK is ${after.block === 101 ? 'never' : `from ${after.block}`} instead of ` +
            `${before.block}, so that no more sessions are blocked, and no more honest ones.`}
      </p>
    </div>
  )
}

type Decile = Figures['deciles'][number] & { policy: string }

const decileColumns: Column<Decile>[] = [
  { id: 'policy', head: 'Policy', cell: ({ policy }) => policy },
  {
    id: 'scores',
    head: 'Scores',
    width: '7rem',
    cell: ({ from, to }) => (from === to ? String(from) : `${from} to ${to}`),
  },
  {
    id: 'sessions',
    head: 'Labelled',
    numeric: true,
    width: '6rem',
    cell: ({ sessions }) => toCount(sessions),
  },
  {
    id: 'expected',
    head: 'Expected fraud',
    numeric: true,
    width: '9rem',
    cell: ({ expected }) => toPercentText(expected),
  },
  {
    id: 'observed',
    head: 'Was fraud',
    width: '11rem',
    cell: ({ observed }) => toRateText(observed),
  },
]

export function Deciles({ compared }: { compared: Compared }) {
  const rows = [
    ...compared.active.deciles.map((one) => ({ ...one, policy: 'In force' })),
    ...compared.suggested.deciles.map((one) => ({ ...one, policy: 'Suggested' })),
  ]
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">Does a higher score mean more fraud?</h3>
      <Table
        columns={decileColumns}
        heightClass="max-h-80"
        label="Calibration by decile"
        minWidth="40rem"
        rowKey={({ policy, from }) => `${policy} ${from}`}
        rows={rows}
      />
      <p className="text-muted text-sm">
        The labelled newer sessions by score, in about tenths: equal scores stay together. Expected
        is what such scores meant among the older sessions. A policy is calibrated where the
        expected share is in the range of what was fraud.
      </p>
    </div>
  )
}
