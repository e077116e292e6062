/**
 * What can be wrong with outcomes from which a policy is learnt: signals that decided what got a
 * label (leaks), signals that only fraud has (separation), and a fleet that changed meanwhile
 * (drift).
 */
import { casesMin } from '#shared/core/base/limits/outcomes.ts'
import type { Feature } from './features.ts'
import type { Support, Trained } from './train.ts'

export type Warning = {
  kind: 'leak' | 'separation' | 'drift' | 'no_better' | 'few_newer'
  /** Null where it is about all. */
  feature: string | null
  detail: string
}

/** Sessions of a period: all, and those with a label. */
export type PeriodTotals = {
  fraud: number
  legitimate: number
  unlabelled: number
  judged: number
}

type Periods<Value> = { older: Value; newer: Value }

/** A share of the labels that a signal alone explains. */
const judgedShareMin = 0.9
/** Labels are so many times as frequent with the signal, and most of its sessions have one. */
const labelledTimesMin = 10
const labelledShareMin = 0.5
/** The share of sessions with a signal doubles or halves, beyond chance. */
const driftTimes = 2
const driftDeviations = 5

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`
const labelledOf = ({ fraud, legitimate }: PeriodTotals) => fraud + legitimate
const allOf = (one: PeriodTotals) => labelledOf(one) + one.unlabelled

/** The warnings of every feature that gets points or has today's. */
export function findWarnings(
  features: readonly Feature[],
  {
    trained,
    support,
    totals,
  }: {
    trained: Trained
    support: Periods<readonly Support[]>
    totals: Periods<PeriodTotals>
  },
): Warning[] {
  return features.flatMap((feature, at) => {
    const [older, newer] = [support.older[at]!, support.newer[at]!]
    const isWeighed = trained.outcomes[at] === 'weighed'
    // Labels that a signal brought can make it seem surer, or harmless so that it loses its points.
    const isTaught = isWeighed || feature.today > 0
    return [
      ...(isTaught ? findLeak(feature, older, totals.older) : []),
      ...(isWeighed ? findSeparation(feature, older) : []),
      ...findDrift(feature, { older, newer }, totals),
    ]
  })
}

function findLeak({ name }: Feature, own: Support, all: PeriodTotals): Warning[] {
  if (labelledOf(own) < casesMin) return []
  const warn = (detail: string): Warning[] => [{ kind: 'leak', feature: name, detail }]
  const judged = own.fraud < casesMin ? 0 : own.judged / own.fraud
  const others = all.fraud - own.fraud
  const judgedOthers = others === 0 ? 0 : (all.judged - own.judged) / others
  if (judged >= judgedShareMin && judgedOthers < judgedShareMin / 2) {
    return warn(
      `${percent(judged)} of its fraud is known only because an alert was judged, of other fraud ` +
        `${percent(judgedOthers)}: the alert may be why it has a label`,
    )
  }
  const share = labelledOf(own) / allOf(own)
  const rest = allOf(all) - allOf(own)
  const shareOfRest = rest === 0 ? 0 : (labelledOf(all) - labelledOf(own)) / rest
  if (share < labelledShareMin || share < labelledTimesMin * shareOfRest) return []
  return warn(
    `${percent(share)} of its sessions have a label, of other sessions ${percent(shareOfRest)}: ` +
      'it may decide what gets one',
  )
}

function findSeparation({ name }: Feature, { fraud, legitimate }: Support): Warning[] {
  if (legitimate > 0 || fraud === 0) return []
  const sessions = fraud === 1 ? '1 labelled session' : `all ${fraud} labelled sessions`
  const detail = `${sessions} with it ${fraud === 1 ? 'is' : 'are'} fraud, and none is honest`
  return [{ kind: 'separation', feature: name, detail }]
}

function findDrift(
  { name }: Feature,
  own: Periods<Support>,
  totals: Periods<PeriodTotals>,
): Warning[] {
  const [before, after] = [allOf(totals.older), allOf(totals.newer)]
  if (before === 0 || after === 0) return []
  const [was, is] = [allOf(own.older), allOf(own.newer)]
  const [oldShare, newShare] = [was / before, is / after]
  const pooled = (was + is) / (before + after)
  const deviation = Math.sqrt(pooled * (1 - pooled) * (1 / before + 1 / after))
  const isBeyondChance = Math.abs(newShare - oldShare) > driftDeviations * deviation
  const isFar = newShare >= driftTimes * oldShare || oldShare >= driftTimes * newShare
  if (!isBeyondChance || !isFar) return []
  const of = `${percent(oldShare)} of the older sessions have it`
  const detail = `${of}, ${percent(newShare)} of the newer`
  return [{ kind: 'drift', feature: name, detail }]
}
