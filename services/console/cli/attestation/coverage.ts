/** `di attestation coverage`: how far a fleet attests, and what keeps phones from it. */
import { InvalidArgumentError, Option } from 'commander'
import { coverageDaysMax } from '#shared/core/base/limits/analytics.ts'
import { type Answer, read } from '../commands.ts'
import { type Column, toColumns, toTime } from '../tables.ts'

const path = '/tenants/{tenant_id}/attestation-coverage'
type Coverage = Answer<typeof path>
type Version = Coverage['versions'][number]

export const coverage = read(
  'coverage <slug>',
  'the share of events by install key, by SDK version; why phones do not attest; leaked keys',
  path,
  {
    options: [
      new Option('--days <n>', 'days to look back').argParser(toDays).default(coverageDaysMax),
    ],
    text: toCoverageText,
  },
)

function toDays(text: string): number {
  const days = Number(text)
  if (Number.isInteger(days) && days >= 1 && days <= coverageDaysMax) return days
  throw new InvalidArgumentError(`must be a whole number from 1 to ${coverageDaysMax}`)
}

/** `-` without events. */
const toShare = (part: number, events: number): string =>
  events === 0 ? '-' : `${((part / events) * 100).toFixed(1)} %`

const versionColumns: readonly Column<Version>[] = [
  ['PLATFORM', ({ platform }) => platform || 'none'],
  ['SDK VERSION', ({ sdk_version: version }) => version || 'none'],
  ['EVENTS', 'events'],
  ['BY INSTALL KEY', ({ install_key: part, events }) => toShare(part, events)],
  ['VERIFIED', ({ verified: part, events }) => toShare(part, events)],
  ['REJECTED', ({ rejected: part, events }) => toShare(part, events)],
  ['NO TOKEN', ({ missing: part, events }) => toShare(part, events)],
]

const reasonColumns: readonly Column<Coverage['reasons'][number]>[] = [
  ['WHY REJECTED', 'reason'],
  ['PROVIDER', 'provider'],
  ['REGISTRATIONS', 'registrations'],
  ['DEVICES', 'devices'],
  ['LAST', ({ last_at: at }) => toTime(at)],
]

const keyColumns: readonly Column<Coverage['shared_keys'][number]>[] = [
  ['SHARED KEY', 'id'],
  ['KIND', 'kind'],
  ['EVER ON', ({ kind, count }) => `${count} ${kind === 'issuer' ? 'models' : 'devices'}`],
  ['DEVICES', 'devices'],
  ['LAST', ({ last_at: at }) => toTime(at)],
]

function toCoverageText(found: Coverage): string {
  const { totals, versions, reasons, shared_keys: keys, version_count: all } = found
  if (totals.events === 0) return 'No event was received in this time.'
  const total: Version = { platform: 'all', sdk_version: 'all', ...totals }
  const more = all > versions.length ? [`${all - versions.length} smaller versions more.`] : []
  return [
    toColumns(versionColumns, [total, ...versions]),
    ...more,
    reasons.length === 0 ? 'No registration was rejected.' : toColumns(reasonColumns, reasons),
    keys.length === 0 ? 'No shared key was found.' : toColumns(keyColumns, keys),
  ].join('\n\n')
}
