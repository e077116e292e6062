/** What a policy makes of the sessions whose outcome is known, beside what was made of them. */
import { toAmountText, toRateText } from '#shared/core/outcomes/figure-text.ts'
import { Time } from '../../components/time/time.tsx'
import type { Report } from './backtest-run.ts'
import { type FigureRow, FiguresTable } from './figures-table.tsx'

type Counts = Report['outcomes']['before']
type Moves = Pick<
  Report['outcomes'],
  'fraud_lost' | 'fraud_gained' | 'honest_spared' | 'honest_newly_harmed'
>

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
  if (before.fraud + before.honest === 0) return null
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">Fraud caught, honest users harmed</h3>
      <FiguresTable
        groups={[{ rows: toRows(before, after) }]}
        heads={['Labelled sessions', ...heads]}
        label="Fraud caught, honest users harmed"
        minWidth="36rem"
      />
      <OutcomeMoves moves={moves} />
      <p className="text-muted text-sm">
        Labels come late. As of{' '}
        {asOf === null ? 'now nothing was copied' : <Time at={asOf} exact />}.
      </p>
    </div>
  )
}

function toRows(before: Counts, after: Counts): FigureRow[] {
  const row = (name: string, show: (counts: Counts) => string): FigureRow => {
    return { name, cells: [show(before), show(after)] }
  }
  const money = before.losses.map(({ currency }) =>
    row(`Money caught, ${currency}`, ({ losses }) => {
      const loss = losses.find((one) => one.currency === currency)
      if (loss === undefined) return '0'
      const { caught, lost, missed } = loss
      return `${toAmountText(caught)} of ${toAmountText(lost)}, ${toAmountText(missed)} missed`
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
    ['text-bad', moves.fraud_lost, 'known fraud', 'would no longer be caught'],
    ['text-good', moves.fraud_gained, 'known fraud', 'would be caught in addition'],
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
