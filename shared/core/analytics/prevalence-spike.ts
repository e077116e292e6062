/**
 * Detects a prevalence spike: within one SDK version a signal is suddenly detected on a larger
 * share of devices, mostly because a release detects it on phones that do not have it. Prevalence
 * is the share of devices of 24 hours on which the signal was detected. It is compared with the
 * same version's earlier days and with the platform's other versions now. Both comparisons must
 * agree where both are possible: an attack that hits all versions is not a release, and a version
 * that always had the higher prevalence has no spike.
 */

/** The devices of a group in 24 hours (`fleet`), and on how many the signal was detected. */
export type PrevalenceSample = { devices: number; fleet: number }

export type PrevalenceSamples = {
  /** The version in the last 24 hours. */
  current: PrevalenceSample
  /** The version on the days before. */
  earlier: readonly PrevalenceSample[]
  /** The platform's other versions together, in the last 24 hours. */
  elsewhere: PrevalenceSample
}

export type PrevalenceSpike = {
  prevalence: number
  /** Null when the version had too few devices before. */
  earlierPrevalence: number | null
  /** Null when other versions have too few devices. */
  elsewherePrevalence: number | null
  /** The smaller of the comparisons, in standard deviations. */
  zScore: number
}

type SpikeLimits = {
  /** Smaller groups are not compared at all. */
  fleetMin: number
  /** Fewest devices with the signal. */
  devicesMin: number
  /** Smallest rise of the prevalence, of 1. */
  changeMin: number
  zMin: number
}

/**
 * When a spike starts. An hourly check tests some 100 signals of some 20 versions, and the checks
 * of one day test mostly the same devices. At 5 standard deviations chance alone raises one alarm
 * in 3.5 million tests: one in four years of a tenant, before the other limits and the second
 * comparison.
 */
export const spikeStartLimits: SpikeLimits = {
  fleetMin: 30,
  devicesMin: 10,
  changeMin: 0.05,
  zMin: 5,
}

/** Below this an open spike ends. Lower than the start, so that a spike does not flap. */
export const spikeEndLimits: SpikeLimits = {
  fleetMin: 30,
  devicesMin: 5,
  changeMin: 0.025,
  zMin: 2.5,
}

/** @returns null when there is no spike, or nothing to compare with */
export function findPrevalenceSpike(
  { current, earlier, elsewhere }: PrevalenceSamples,
  limits: SpikeLimits = spikeStartLimits,
): PrevalenceSpike | null {
  if (current.fleet < limits.fleetMin || current.devices < limits.devicesMin) return null
  const before = toBaseline(earlier, limits)
  const others = toBaseline([elsewhere], limits)
  const baselines = [before, others].filter((one) => one !== null)
  if (baselines.length === 0) return null
  const prevalence = current.devices / current.fleet
  if (baselines.some((one) => prevalence - one.prevalence < limits.changeMin)) return null
  const zScore = Math.min(...baselines.map((one) => compare(current, one)))
  if (zScore < limits.zMin) return null
  return {
    prevalence,
    earlierPrevalence: before?.prevalence ?? null,
    elsewherePrevalence: others?.prevalence ?? null,
    zScore,
  }
}

type Baseline = {
  prevalence: number
  /** Devices of the largest day: the days of one fleet are mostly the same devices. */
  fleet: number
  /** Variance between days beyond chance: weekends, campaigns. */
  dailyVariance: number
}

function toBaseline(days: readonly PrevalenceSample[], limits: SpikeLimits): Baseline | null {
  const seen = days.filter(({ fleet }) => fleet > 0)
  const fleet = Math.max(0, ...seen.map((one) => one.fleet))
  if (fleet < limits.fleetMin) return null
  const total = seen.reduce((sum, one) => sum + one.fleet, 0)
  const prevalence = seen.reduce((sum, one) => sum + one.devices, 0) / total
  return { prevalence, fleet, dailyVariance: measureDailyVariance(seen, prevalence, total) }
}

function measureDailyVariance(
  days: readonly PrevalenceSample[],
  prevalence: number,
  total: number,
): number {
  if (days.length < 3) return 0
  const spread =
    days.reduce((sum, one) => sum + one.fleet * (one.devices / one.fleet - prevalence) ** 2, 0) /
    total
  const chance = (prevalence * (1 - prevalence) * (days.length - 1)) / total
  return Math.max(0, spread - chance)
}

/** The z-score of two proportions, pooled, with the variance between days added. */
function compare(current: PrevalenceSample, base: Baseline): number {
  const prevalence = current.devices / current.fleet
  const pooled = (current.devices + base.prevalence * base.fleet) / (current.fleet + base.fleet)
  const variance = pooled * (1 - pooled) * (1 / current.fleet + 1 / base.fleet) + base.dailyVariance
  // Detected on all devices of both groups, or on none: the prevalences are equal.
  return variance === 0 ? 0 : (prevalence - base.prevalence) / Math.sqrt(variance)
}
