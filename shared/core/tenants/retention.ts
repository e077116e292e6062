/**
 * Retention: the defaults, the limits that a tenant can set, and the instant before which data is
 * removed.
 */
import { dayMs } from '#shared/core/base/instants.ts'

/** The kinds of data with a retention of their own. */
export const retainedKinds = ['events', 'alerts', 'deliveries'] as const
export type RetainedKind = (typeof retainedKinds)[number]

/** Days, or null for without limit. */
export type RetentionDays = Record<RetainedKind, number | null>

/**
 * Events for a year and a month, so that the same weeks of two years can be compared; alerts
 * without limit; deliveries for a month, in which receivers may inquire about one.
 */
const retentionDefaults: RetentionDays = { events: 400, alerts: null, deliveries: 30 }

/** The longest limit that can be set: a century. */
export const retentionDaysMax = 36_500

/** Days that audit entries are kept: 0 is forever. The table `audit_retention` has the same bounds. */
export const auditDaysDefault = 400
export const auditDaysMin = 30
export const isAuditRetention = (days: number): boolean =>
  Number.isInteger(days) && (days === 0 || (days >= auditDaysMin && days <= retentionDaysMax))

/** A limit as operators set it. */
export type RetentionSetting = number | 'default' | 'forever'

/** A limit as it is stored: null is the default, 0 is without limit. */
export const toStoredDays = (setting: RetentionSetting): number | null =>
  setting === 'default' ? null : setting === 'forever' ? 0 : setting

/** A limit as operators see it. `default`: the tenant has no limit of its own. */
export type RetentionView = { days: number | null; default: boolean }

/**
 * A stored limit as operators see it.
 * @param stored days; null is the default, 0 is without limit
 */
export function toRetentionView(kind: RetainedKind, stored: number | null): RetentionView {
  if (stored === null) return { days: retentionDefaults[kind], default: true }
  return { days: stored === 0 ? null : stored, default: false }
}

/** The instant before which data is removed, in ms since 1970; null without a limit. */
export function toCutoffMs(days: number | null, nowMs: number): number | null {
  return days === null ? null : nowMs - days * dayMs
}

/**
 * The same, rounded down to UTC midnight: where a removal rewrites files, each limit causes one a
 * day instead of one an hour.
 */
export function toCutoffDayMs(days: number | null, nowMs: number): number | null {
  const cutoffMs = toCutoffMs(days, nowMs)
  return cutoffMs === null ? null : Math.floor(cutoffMs / dayMs) * dayMs
}
