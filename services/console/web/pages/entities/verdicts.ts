/** What people said of alerts, in words. Pure. */
import { counted } from '../../components/words.ts'

export type Verdicts = {
  open: number
  reviewed: number
  confirmed: number
  false_positive: number
}

export const totalOf = ({ open, reviewed, confirmed, false_positive: other }: Verdicts): number =>
  open + reviewed + confirmed + other

/** `31 alerts, 24 confirmed, 2 false positives, 5 open`; the rest is only reviewed. */
export function toVerdictText(verdicts: Verdicts): string {
  const total = totalOf(verdicts)
  if (total === 0) return 'none'
  const { open, confirmed, false_positive: falsePositive } = verdicts
  return [
    counted(total, 'alert'),
    ...(confirmed > 0 ? [`${confirmed.toLocaleString('en')} confirmed`] : []),
    ...(falsePositive > 0 ? [counted(falsePositive, 'false positive')] : []),
    ...(open > 0 ? [`${open.toLocaleString('en')} open`] : []),
  ].join(', ')
}
