/** How the policy in force and the suggested one do on the same newer sessions. */
import { type Column, Table } from '../../../components/table.tsx'
import { toCount, toPercent, toRange, toRate } from './figures.ts'
import type { Suggestion } from './suggestion-run.ts'

type Compared = Suggestion['compared']
type Figures = Compared['active']
type AtThreshold = Figures['review']
type Row = { name: string; active: string; suggested: string }

const columns: Column<Row>[] = [
  { id: 'name', head: 'Newer sessions', width: '18rem', cell: ({ name }) => name },
  { id: 'active', head: 'In force', cell: ({ active }) => active },
  { id: 'suggested', head: 'Suggested', cell: ({ suggested }) => suggested },
]

function toRows({ active, suggested }: Compared): Row[] {
  const row = (name: string, of: (figures: Figures) => string): Row => {
    return { name, active: of(active), suggested: of(suggested) }
  }
  const currencies = active.review.losses.map(({ currency }) => currency)
  const at = (name: string, of: (figures: Figures) => AtThreshold): Row[] => [
    row(`${name}: from score`, (one) => String(of(one).threshold)),
    row(`${name}: sessions a day`, (one) => of(one).alerts_a_day.toFixed(1)),
    row(`${name}: recall`, (one) => toRate(of(one).recall)),
    row(`${name}: precision`, (one) => toRate(of(one).precision)),
    row(`${name}: fraud missed`, (one) => toCount(of(one).missed)),
    row(`${name}: honest sessions harmed`, (one) => toCount(of(one).harmed)),
    row(`${name}: honest users harmed`, (one) => toCount(of(one).harmed_users)),
    ...currencies.map((currency) =>
      row(`${name}: money caught, ${currency}`, (one) => toMoney(of(one), currency)),
    ),
  ]
  return [
    row('Equal alerts: recall', ({ at_equal_alerts: { recall, recall_range: range } }) => {
      return `${toPercent(recall)} (${toRange(range)})`
    }),
    row('Equal alerts: precision', (one) => toPercent(one.at_equal_alerts.precision)),
    ...at('REVIEW or BLOCK', (one) => one.review),
    ...at('BLOCK', (one) => one.block),
  ]
}

function toMoney({ losses }: AtThreshold, currency: string): string {
  const { caught, lost, missed } = losses.find((one) => one.currency === currency)!
  return `${caught} of ${lost}, ${missed} missed`
}

const toPoints = (share: number): string => (100 * share).toFixed(1)

export function Comparison({ suggestion: { compared, thresholds } }: { suggestion: Suggestion }) {
  const { recall_gained: gained, recall_gained_range: range } = compared
  const { before, after } = thresholds
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">On the same newer sessions</h3>
      <Table
        columns={columns}
        heightClass="max-h-[30rem]"
        label="In force and suggested"
        minWidth="44rem"
        rowKey={({ name }) => name}
        rows={toRows(compared)}
      />
      <p className="text-muted text-sm">
        With {toCount(compared.alerts)} alerts each the suggestion catches {toPoints(gained)} points
        more of the labelled fraud (95 % of runs: {toPoints(range.low)} to {toPoints(range.high)}).
        Precision is of labelled sessions.
        {before.block !== after.block &&
          ` BLOCK is from ${after.block} instead of ${before.block}, so that no more sessions are ` +
            'blocked, and no more honest ones.'}
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
    cell: ({ from, to }) => (from === to ? String(from) : `${from} to ${to}`),
  },
  { id: 'sessions', head: 'Labelled', numeric: true, cell: ({ sessions }) => toCount(sessions) },
  {
    id: 'expected',
    head: 'Expected fraud',
    numeric: true,
    cell: ({ expected }) => toPercent(expected),
  },
  { id: 'observed', head: 'Was fraud', width: '15rem', cell: ({ observed }) => toRate(observed) },
]

export function Deciles({ compared }: { compared: Compared }) {
  const rows = [
    ...compared.active.deciles.map((one) => ({ ...one, policy: 'In force' })),
    ...compared.suggested.deciles.map((one) => ({ ...one, policy: 'Suggested' })),
  ]
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">Calibration by tenths of the labelled sessions</h3>
      <Table
        columns={decileColumns}
        heightClass="max-h-80"
        label="Calibration by decile"
        minWidth="44rem"
        rowKey={({ policy, from }) => `${policy} ${from}`}
        rows={rows}
      />
    </div>
  )
}
