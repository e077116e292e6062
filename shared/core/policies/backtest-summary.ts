/** What is kept of a backtest: how many sessions change, and over how many events. */
import type { BacktestReport } from './backtest.ts'
import { toPolicyHash } from './policy.ts'
import { checkPolicy } from './policy-check.ts'

export type BacktestSummary = {
  events: number
  since: string | null
  new: number
  gone: number
  stricter: number
  milder: number
  /** Confirmed alerts of sessions that nothing raises any more. */
  confirmed_lost: number
}

/** @param report of the whole run */
export function toBacktestSummary(
  report: Pick<BacktestReport, 'events' | 'changes' | 'by_disposition'> & { since: string | null },
): BacktestSummary {
  const { changes } = report
  const confirmed = report.by_disposition.find(({ name }) => name === 'CONFIRMED')
  return {
    events: report.events,
    since: report.since,
    new: changes.new,
    gone: changes.gone,
    stricter: changes.stricter,
    milder: changes.milder,
    confirmed_lost: confirmed === undefined ? 0 : confirmed.lost - confirmed.may_stay,
  }
}

/**
 * The hash under which the backtest of a document is kept: of what it means, so that neither
 * defaults nor the order of keys matter. @returns null of a document that is not valid
 */
export function toBacktestHash(document: unknown): string | null {
  const checked = checkPolicy(document)
  return checked.ok ? toPolicyHash(checked.policy) : null
}
