/** Cases in words. Pure. */
import { nameFlags } from '#shared/core/alerts/alert-sentence.ts'
import type { CaseSubjectKind } from '#shared/core/cases/case.ts'

/** For the start of a line. */
export const subjectNames: Readonly<Record<CaseSubjectKind, string>> = {
  phone: 'Phone',
  device: 'Device',
  user: 'User',
}

export const toFlagNames = (flags: readonly { code: string }[]): string =>
  nameFlags(flags.map(({ code }) => code))

/** What was lost, by currency: `129.90 EUR, 40 USD`. */
export const toMoneyText = (sums: readonly { amount: string; currency: string }[]): string =>
  sums.map(({ amount, currency }) => `${amount} ${currency}`).join(', ')

/** How long before its due time a case is shown as urgent. */
const urgentMs = 3_600_000

/** How near a due time is; overdue from the moment itself on. */
export function toDueState(dueAt: string, nowMs: number): 'overdue' | 'urgent' | 'later' {
  const leftMs = Date.parse(dueAt) - nowMs
  if (leftMs <= 0) return 'overdue'
  return leftMs <= urgentMs ? 'urgent' : 'later'
}
