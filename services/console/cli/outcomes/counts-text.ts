/** What was made of the sessions whose outcome is known, as text. */
import type { OutcomeCounts, OutcomeMoves } from '#shared/core/outcomes/outcome-counts.ts'
import type { Rate } from '#shared/core/outcomes/wilson.ts'
import { toTable, toTime } from '../tables.ts'

export const percent = (share: number | null): string =>
  share === null ? '-' : `${(100 * share).toFixed(1)} %`

const toRateText = ({ rate, low, high }: Rate): string =>
  rate === null ? 'too few to say' : `${percent(rate)}, ${percent(low)} to ${percent(high)}`

const toCaught = ({ caught, recall }: OutcomeCounts) => `${caught} caught (${toRateText(recall)})`
const toHarmed = ({ harmed, harmed_share: share }: OutcomeCounts) =>
  `${harmed} harmed (${toRateText(share)})`

/** One policy's counts, a line each. */
export function toCountsLines(counts: OutcomeCounts): string[] {
  const { fraud, missed, honest, harmed_users: users, losses } = counts
  return [
    `${fraud} fraudulent sessions: ${toCaught(counts)}, ${missed} missed`,
    `${honest} honest sessions: ${toHarmed(counts)}, of ${users} users`,
    ...losses.map(
      (one) => `${one.currency} ${one.lost} lost: ${one.caught} caught, ${one.missed} missed`,
    ),
  ]
}

type Compared = { before: OutcomeCounts; after: OutcomeCounts; heads: [string, string] }

/** Counts of two policies side by side, and what changes. */
export function toComparedOutcomes(
  { before, after, heads }: Compared,
  { as_of: asOf, ...moves }: OutcomeMoves & { as_of: string | null },
): string {
  const { fraud, honest } = before
  if (fraud + honest === 0) return 'Of no session the outcome is known.'
  const row = (name: string, show: (counts: OutcomeCounts) => string) => [
    name,
    ...[before, after].map(show),
  ]
  const table = toTable(
    ['OUTCOMES', ...heads],
    [
      row(`${fraud} fraudulent sessions`, (one) => `${toCaught(one)}, ${one.missed} missed`),
      row(`${honest} honest sessions`, (one) => `${toHarmed(one)}, of ${one.harmed_users} users`),
      ...before.losses.map(({ currency, lost }, at) =>
        row(`${currency} ${lost} lost`, ({ losses }) => {
          const { caught, missed } = losses[at]!
          return `${caught} caught, ${missed} missed`
        }),
      ),
    ],
  )
  return (
    `${table}\n${moves.fraud_lost} confirmed fraud sessions would no longer be caught and ` +
    `${moves.fraud_gained} in addition; ${moves.honest_newly_harmed} honest sessions would be ` +
    `harmed in addition and ${moves.honest_spared} no longer. As of ` +
    `${asOf === null ? '-' : toTime(asOf)}.`
  )
}
