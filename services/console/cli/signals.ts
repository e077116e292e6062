/** `di signals ...`: the known signals with their weights, and unknown signals that SDKs send. */
import { type Command, InvalidArgumentError } from 'commander'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import {
  type ListedSignal,
  type SignalList,
  toSignalList,
} from '#shared/core/signals/signal-list.ts'
import type { SignalsLeftOut, UnknownSignal } from '#shared/io/telemetry/unknown-signal-store.ts'
import { unknownSignalDaysMax } from '../analytics/signal-schemas.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toLimit } from './deliveries.ts'
import { toTable, toTime } from './tables.ts'

type UnknownSignals = { days: number; left_out: SignalsLeftOut; data: UnknownSignal[] }

/** Adds the group `signals`. */
export function registerSignals(program: Command, context: CliContext): void {
  const signals = program
    .command('signals')
    .description('the signal catalog, and unknown signals of SDKs')
  signals
    .command('list [slug]')
    .description('the signal catalog with its weights for a tenant, or for any new one')
    .option('--json', 'print one JSON document')
    .action(async (slug?: string) => {
      const list =
        slug === undefined
          ? listOfNewTenant()
          : await context.adminFetch('GET', `${toTenantPath(slug)}/signals`)
      context.out(list as SignalList, toSignalText)
    })
  signals
    .command('unknown <slug>')
    .description('signals that the catalog does not know, by SDK version, most events first')
    .option('--days <n>', 'days to look back', toDays, 7)
    .option('--limit <n>', 'at most this many', toLimit, 100)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { days, limit }: { days: number; limit: number }) => {
      const query = new URLSearchParams({ days: String(days), limit: String(limit) })
      const path = `${toTenantPath(slug)}/unknown-signals?${query}`
      context.out((await context.adminFetch('GET', path)) as UnknownSignals, toUnknownText)
    })
}

function listOfNewTenant(): SignalList {
  const policyHash = toPolicyHash(defaultPolicy)
  return toSignalList({ policy: defaultPolicy, version: 1, policyHash }, 0)
}

function toDays(text: string): number {
  const days = Number(text)
  if (Number.isInteger(days) && days >= 1 && days <= unknownSignalDaysMax) return days
  throw new InvalidArgumentError(`must be a whole number from 1 to ${unknownSignalDaysMax}`)
}

function toSignalText({ policy, categories }: SignalList): string {
  const { name, version, thresholds } = policy
  const title = `${name}, version ${version}: REVIEW from ${thresholds.review}, BLOCK from ${thresholds.block}`
  const rows = categories.flatMap(({ category, cap, soft, signals }) => [
    [category.toUpperCase(), '', '', '', '', `at most ${cap}${soft ? ', never BLOCK alone' : ''}`],
    ...signals.map((one) => [
      `  ${one.name}`,
      one.type,
      one.platforms.join(' '),
      one.grade,
      one.flag,
      toWeightText(one),
    ]),
  ])
  return `${title}\n\n${toTable(['SIGNAL', 'TYPE', 'PLATFORMS', 'GRADE', 'FLAG', 'WEIGHT'], rows)}`
}

/** `40`, `30 when false`, `12 from 5`, `FAILED 30, SELF_SIGNED 12`. */
function toWeightText({ weight, suppressed }: ListedSignal): string {
  const off = suppressed.length === 0 ? '' : ' (suppressed)'
  if (typeof weight === 'number') return `${weight}${off}`
  if ('when_false' in weight) return `${weight.when_false} when false${off}`
  if ('at_least' in weight) return `${weight.weight} from ${weight.at_least}${off}`
  const values = Object.entries(weight.values).map(([value, points]) => `${value} ${points}`)
  return `${values.join(', ')}${off}`
}

function toUnknownText({ days, data, left_out: leftOut }: UnknownSignals): string {
  if (data.length === 0) return `The catalog knows every signal of the last ${days} days.`
  const { events, values } = leftOut
  const note =
    values === 0
      ? ''
      : `\n${values} values of ${events} events are in their bodies only: there are too many names.`
  const table = toTable(
    ['SIGNAL', 'SDK', 'PLATFORM', 'EVENTS', 'DEVICES', 'FIRST SEEN', 'LAST SEEN'],
    data.map((one) => [
      one.signal,
      one.sdk_version,
      one.platform,
      String(one.events),
      String(one.devices),
      toTime(one.first_seen_at),
      toTime(one.last_seen_at),
    ]),
  )
  return table + note
}
