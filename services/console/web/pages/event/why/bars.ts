/** Where each bar of the waterfall begins and ends. Pure. */
export type Reason = { code: string; weight: number; evidence: Record<string, unknown> }

export type Bar = { reason: Reason; from: number; to: number }

/**
 * Stacks the reasons: each begins where the one before it ended.
 * @param reasons heaviest first, as the API has them
 * @param score what they add up to; a rest that they do not explain is never hidden
 */
export function toBars(
  reasons: readonly Reason[],
  score: number,
): { bars: Bar[]; unexplained: number } {
  let at = 0
  const bars = reasons.map((reason) => {
    const from = at
    at += reason.weight
    return { reason, from, to: at }
  })
  return { bars, unexplained: score - at }
}
