/**
 * Whether a signal's share of the fleet jumped within one SDK version: the bad release that finds
 * something on phones on which nothing is. Compared are shares of devices in 24 hours, with the
 * same version's earlier days and with the platform's other versions now; both must agree, where
 * both are known. A wave that hits all versions alike is no release, and a version that always
 * found more has not jumped.
 */

/** Devices of some group in 24 hours, and on how many of them the signal was detected. */
export type SignalDay = { devices: number; fleet: number }

export type SignalShares = {
  /** The version in the last 24 hours. */
  current: SignalDay
  /** The version on the days before. */
  earlier: readonly SignalDay[]
  /** The platform's other versions together, in the last 24 hours. */
  elsewhere: SignalDay
}

export type SignalJump = {
  share: number
  /** Null when the version was hardly there before. */
  earlierShare: number | null
  /** Null when there is hardly any other version. */
  elsewhereShare: number | null
  /** The smaller of the comparisons, in standard deviations. */
  zScore: number
}

export type JumpLimits = {
  /** Smaller groups are not compared at all. */
  fleetMin: number
  /** The signal must be on so many devices. */
  devicesMin: number
  /** By how much the share must have risen, of 1. */
  changeMin: number
  zMin: number
}

/**
 * When a jump is told. An hour asks about some 100 signals of some 20 versions; hours of one day
 * mostly ask the same. At 5 standard deviations chance alone answers yes once in 3.5 million times:
 * about once in four years of one tenant, before the other limits and the second comparison.
 */
export const jumpLimits: JumpLimits = { fleetMin: 30, devicesMin: 10, changeMin: 0.05, zMin: 5 }

/** When one that was told goes on: lower, so that it does not come and go. */
export const jumpEndLimits: JumpLimits = {
  fleetMin: 30,
  devicesMin: 5,
  changeMin: 0.025,
  zMin: 2.5,
}

/** @returns null when the share has not jumped, or nothing is known to compare it with */
export function findSignalJump(
  { current, earlier, elsewhere }: SignalShares,
  limits: JumpLimits = jumpLimits,
): SignalJump | null {
  if (current.fleet < limits.fleetMin || current.devices < limits.devicesMin) return null
  const before = toBaseline(earlier, limits)
  const others = toBaseline([elsewhere], limits)
  const known = [before, others].filter((one) => one !== null)
  if (known.length === 0) return null
  const share = current.devices / current.fleet
  if (known.some((one) => share - one.share < limits.changeMin)) return null
  const zScore = Math.min(...known.map((one) => compare(current, one)))
  if (zScore < limits.zMin) return null
  return {
    share,
    earlierShare: before?.share ?? null,
    elsewhereShare: others?.share ?? null,
    zScore,
  }
}

type Baseline = {
  share: number
  /** How many devices stand behind it: days of one fleet are mostly the same devices. */
  fleet: number
  /** How much days differ beyond chance, as a variance: weekends, campaigns. */
  restless: number
}

function toBaseline(days: readonly SignalDay[], limits: JumpLimits): Baseline | null {
  const seen = days.filter(({ fleet }) => fleet > 0)
  const fleet = Math.max(0, ...seen.map((one) => one.fleet))
  if (fleet < limits.fleetMin) return null
  const total = seen.reduce((sum, one) => sum + one.fleet, 0)
  const share = seen.reduce((sum, one) => sum + one.devices, 0) / total
  return { share, fleet, restless: measureRestlessness(seen, share, total) }
}

function measureRestlessness(days: readonly SignalDay[], share: number, total: number): number {
  if (days.length < 3) return 0
  const spread =
    days.reduce((sum, one) => sum + one.fleet * (one.devices / one.fleet - share) ** 2, 0) / total
  const chance = (share * (1 - share) * (days.length - 1)) / total
  return Math.max(0, spread - chance)
}

/** Two proportions, pooled, and what days differ by anyway. */
function compare(current: SignalDay, base: Baseline): number {
  const share = current.devices / current.fleet
  const pooled = (current.devices + base.share * base.fleet) / (current.fleet + base.fleet)
  const variance = pooled * (1 - pooled) * (1 / current.fleet + 1 / base.fleet) + base.restless
  // Everything here and everything there: then the shares are equal.
  return variance === 0 ? 0 : (share - base.share) / Math.sqrt(variance)
}
