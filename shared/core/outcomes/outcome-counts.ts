/**
 * What was made of the sessions whose outcome is known: fraud caught and missed, honest users
 * harmed, and the money. Every figure of it is computed here: a session is caught, or harmed, when
 * it has an alert, and it has one when the action of its highest risk score is REVIEW or BLOCK.
 * What another policy makes of it is compared with that.
 */
import { toLabelledSessionsSql } from './coverage-sql.ts'
import { formatAmount } from './money.ts'
import { type Rate, toRate } from './wilson.ts'

/** Money of one currency, as decimal texts. */
export type Loss = { currency: string; lost: string; caught: string; missed: string }

/** Counts of sessions of which the outcome is known. */
export type OutcomeCounts = {
  fraud: number
  /** Of `fraud`, those with an alert. */
  caught: number
  missed: number
  recall: Rate
  honest: number
  /** Of `honest`, those with an alert. */
  harmed: number
  /** Users and accounts of these. */
  harmed_users: number
  harmed_share: Rate
  losses: Loss[]
}

/** Sessions for which another policy changes whether they have an alert. */
export type OutcomeMoves = {
  fraud_lost: number
  fraud_gained: number
  honest_spared: number
  honest_newly_harmed: number
}

/** As the engine sums it; money by currency, as decimal texts. */
export type OutcomeSums = {
  fraud: number
  caught: number
  honest: number
  harmed: number
  harmed_users: number
  lost: KnownLosses
  lost_caught: KnownLosses
}

export const noOutcomes: OutcomeSums = {
  fraud: 0,
  caught: 0,
  honest: 0,
  harmed: 0,
  harmed_users: 0,
  lost: {},
  lost_caught: {},
}

/** SQL: whether a labelled session began in the period of the parameters `since` and `until`. */
export const inOutcomePeriod = `started_at >= fromUnixTimestamp64Milli({since:Int64})
  and started_at < fromUnixTimestamp64Milli({until:Int64})`

/** Those parameters; null is open. The end is one of `DateTime64(3)`. */
export const toPeriodParams = (period: { sinceMs: number | null; untilMs?: number | null }) => ({
  since: period.sinceMs ?? 0,
  until: period.untilMs ?? Date.UTC(2200, 0, 1),
})

/** SQL: the labelled sessions of the parameter `tenant`, and whether each `has_alert`. */
export const judgedSessionsSql = `
  select *, bitAnd(bitShiftRight(risk.rank, 1), 3) > 0 as has_alert
  from (${toLabelledSessionsSql('tenant_id = {tenant:String}')})`

const sumsType = `Tuple(fraud UInt64, caught UInt64, honest UInt64, harmed UInt64,
  harmed_users UInt64, lost Map(String, String), lost_caught Map(String, String))`
/** SQL: amounts by currency as decimal texts, which no binary number touches. */
export const toLossTextsSql = (losses: string): string =>
  `mapApply((c, a) -> (toString(c), toString(a)), ${losses})`

/**
 * SQL: an `OutcomeSums` of labelled sessions.
 * @param hasAlert SQL of whether a session has one
 */
export const toOutcomeSumsSql = (hasAlert: string): string => `
  cast(tuple(
    countIf(outcome = 'fraud'),
    countIf(outcome = 'fraud' and ${hasAlert}),
    countIf(outcome = 'legitimate'),
    countIf(outcome = 'legitimate' and ${hasAlert}),
    length(groupUniqArrayArrayIf(users, outcome = 'legitimate' and ${hasAlert})),
    ${toLossTextsSql('sumMap(losses)')},
    ${toLossTextsSql(`sumMapIf(losses, ${hasAlert})`)}
  ), '${sumsType}')`

type KnownLosses = Readonly<Record<string, string>>

/** Labelled sessions of which the same is known. */
export type KnownSessions = {
  fraud: number
  legitimate: number
  /** Of the fraud; by currency, as decimal texts. */
  losses: KnownLosses
  /** Users and accounts of the legitimate ones, each as a number. */
  honestUsers: readonly number[]
}

/** Sums as `toOutcomeSumsSql` does. @param hasAlert of each group of sessions */
export function sumOutcomes<Known extends KnownSessions>(
  all: readonly Known[],
  hasAlert: (sessions: Known) => boolean,
): OutcomeSums {
  const sums = { fraud: 0, caught: 0, honest: 0, harmed: 0 }
  const harmedUsers = new Set<number>()
  let lost: KnownLosses = {}
  let lostCaught: KnownLosses = {}
  for (const sessions of all) {
    const { fraud, legitimate, losses, honestUsers } = sessions
    sums.fraud += fraud
    sums.honest += legitimate
    lost = addLosses(lost, losses)
    if (!hasAlert(sessions)) continue
    sums.caught += fraud
    sums.harmed += legitimate
    lostCaught = addLosses(lostCaught, losses)
    for (const user of honestUsers) harmedUsers.add(user)
  }
  return { ...sums, harmed_users: harmedUsers.size, lost, lost_caught: lostCaught }
}

/** Sums of decimal texts by currency. */
export function addLosses(one: KnownLosses, other: KnownLosses): Record<string, string> {
  const sums: Record<string, string> = { ...one }
  for (const [currency, amount] of Object.entries(other)) {
    sums[currency] = toDecimal(toUnits(sums[currency]) + toUnits(amount))
  }
  return sums
}

/** SQL: an `OutcomeMoves` from the SQL of whether a session has an alert before and after. */
export const toOutcomeMovesSql = (before: string, after: string): string => `
  cast(tuple(
    countIf(outcome = 'fraud' and ${before} and not ${after}),
    countIf(outcome = 'fraud' and not ${before} and ${after}),
    countIf(outcome = 'legitimate' and ${before} and not ${after}),
    countIf(outcome = 'legitimate' and not ${before} and ${after})
  ), 'Tuple(fraud_lost UInt64, fraud_gained UInt64, honest_spared UInt64,
    honest_newly_harmed UInt64)')`

export const noMoves: OutcomeMoves = {
  fraud_lost: 0,
  fraud_gained: 0,
  honest_spared: 0,
  honest_newly_harmed: 0,
}

/** The counts of sums, with their rates. */
export function toOutcomeCounts(sums: OutcomeSums): OutcomeCounts {
  const { fraud, caught, honest, harmed, harmed_users } = sums
  return {
    fraud,
    caught,
    missed: fraud - caught,
    recall: toRate(caught, fraud),
    honest,
    harmed,
    harmed_users,
    harmed_share: toRate(harmed, honest),
    losses: toLosses(sums),
  }
}

/** By the name of the currency: amounts of two cannot be compared. */
export function toLosses({ lost, lost_caught: caught }: OutcomeSums): Loss[] {
  return Object.keys(lost)
    .sort()
    .map((currency) => {
      const [all, seen] = [toUnits(lost[currency]), toUnits(caught[currency])]
      const show = (units: bigint) => formatAmount(toDecimal(units), currency)
      return { currency, lost: show(all), caught: show(seen), missed: show(all - seen) }
    })
}

const behindPoint = 4

/** A decimal text as ten-thousandths. */
function toUnits(text = '0'): bigint {
  const [whole = '0', behind = ''] = text.split('.')
  return BigInt(whole + behind.slice(0, behindPoint).padEnd(behindPoint, '0'))
}

function toDecimal(units: bigint): string {
  const digits = units.toString().padStart(behindPoint + 1, '0')
  return `${digits.slice(0, -behindPoint)}.${digits.slice(-behindPoint)}`
}
