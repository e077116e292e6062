/** What a policy makes of the sessions whose outcome is known, beside what was made of them. */

import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { toRateText } from '../../components/words.ts'
import type { Report } from './backtest-run.ts'

type Counts = Report['outcomes']['before']
type Moves = Pick<
  Report['outcomes'],
  'fraud_lost' | 'fraud_gained' | 'honest_spared' | 'honest_newly_harmed'
>
type Row = { name: string; before: string; after: string }

const toCount = (value: number) => value.toLocaleString('en')

/** Counts side by side, by the time at which labels were copied. */
export function KnownOutcomes({
  before,
  after,
  heads,
  moves,
  asOf,
}: {
  before: Counts
  after: Counts
  heads: [before: string, after: string]
  moves: Moves
  asOf: string | null
}) {
  const columns: Column<Row>[] = [
    { id: 'name', head: 'Sessions of which the outcome is known', cell: ({ name }) => name },
    { id: 'before', head: heads[0], width: '17rem', cell: (row) => row.before },
    { id: 'after', head: heads[1], width: '17rem', cell: (row) => row.after },
  ]
  if (before.fraud + before.honest === 0) return null
  return (
    <div className="grid gap-2">
      <h3 className="font-medium">Fraud caught, honest users harmed</h3>
      <Table
        columns={columns}
        label="Fraud caught, honest users harmed"
        minWidth="48rem"
        rowKey={({ name }) => name}
        rows={toRows(before, after)}
      />
      <OutcomeMoves moves={moves} />
      <p className="text-muted text-sm">
        Labels come late. As of{' '}
        {asOf === null ? 'now nothing was copied' : <Time at={asOf} exact />}.
      </p>
    </div>
  )
}

function toRows(before: Counts, after: Counts): Row[] {
  const row = (name: string, show: (counts: Counts) => string): Row => {
    return { name, before: show(before), after: show(after) }
  }
  const money = before.losses.map(({ currency }) =>
    row(`Money caught, ${currency}`, ({ losses }) => {
      const loss = losses.find((one) => one.currency === currency)
      return loss === undefined ? '0' : `${loss.caught} of ${loss.lost}, ${loss.missed} missed`
    }),
  )
  return [
    row(
      'Fraud caught',
      (one) => `${toCount(one.caught)} of ${toCount(one.fraud)}: ${toRateText(one.recall)}`,
    ),
    row('Fraud missed', (one) => toCount(one.missed)),
    row(
      'Honest sessions harmed',
      (one) => `${toCount(one.harmed)} of ${toCount(one.honest)}: ${toRateText(one.harmed_share)}`,
    ),
    row('Honest users harmed', (one) => toCount(one.harmed_users)),
    ...money,
  ]
}

const sessions = (count: number, kind: string): string =>
  `${toCount(count)} ${kind} ${count === 1 ? 'session' : 'sessions'}`

/** What changes, in words; nothing where nothing does. */
export function OutcomeMoves({ moves }: { moves: Moves }) {
  const lines = [
    ['text-bad', moves.fraud_lost, 'confirmed fraud', 'would no longer be caught'],
    ['text-good', moves.fraud_gained, 'confirmed fraud', 'would be caught in addition'],
    ['text-bad', moves.honest_newly_harmed, 'honest', 'would be harmed in addition'],
    ['text-good', moves.honest_spared, 'honest', 'would no longer be harmed'],
  ] as const
  return lines
    .filter(([, count]) => count > 0)
    .map(([tone, count, kind, what]) => (
      <p className={tone} key={`${kind} ${what}`}>
        {sessions(count, kind)} {what}.
      </p>
    ))
}
