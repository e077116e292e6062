/** `di signals ...`: the known signals with their weights, and unknown signals that SDKs send. */
import { InvalidArgumentError, Option } from 'commander'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import {
  type ListedSignal,
  type SignalList,
  toSignalList,
} from '#shared/core/signals/signal-list.ts'
import { unknownSignalDaysMax } from '../analytics/signal-schemas.ts'
import { type Answer, command, group, limit, read } from './commands.ts'
import { toTenantPath } from './context.ts'
import { spikes } from './rule-performance.ts'
import { type Column, toColumns, toTable } from './tables.ts'

type FreedNames = Answer<'/tenants/{tenant_id}/unknown-signals/free', 'post'>
type UnknownSignals = Answer<'/tenants/{tenant_id}/unknown-signals'>

export const signals = group('signals', 'the signal catalog, and unknown signals of SDKs', [
  command(
    'list [slug]',
    'the signal catalog with its weights for a tenant, or for any new one',
    [],
    async (context, [slug]) => {
      const list =
        slug === undefined
          ? listOfNewTenant()
          : await context.adminFetch('GET', `${toTenantPath(slug)}/signals`)
      context.out(list as SignalList, toSignalText)
    },
  ),
  read(
    'unknown <slug>',
    'signals that the catalog does not know, by SDK version, most events first',
    '/tenants/{tenant_id}/unknown-signals',
    {
      options: [
        new Option('--days <n>', 'days to look back').argParser(toDays).default(7),
        limit(100),
      ],
      text: toUnknownText,
    },
  ),
  command(
    'free <slug>',
    'free the names of unknown signals that became columns, for others that are sent',
    [],
    async (context, [slug]) => {
      const freed = await context.adminFetch('POST', `${toTenantPath(slug!)}/unknown-signals/free`)
      context.out(freed as FreedNames, ({ tenant_id: tenant }) => {
        return `The names of ${tenant} are free. Scorers forget them within seconds.`
      })
    },
  ),
  spikes,
])

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
  const rows = categories.flatMap(({ category, seen_by: seenBy, cap, soft, signals }) => [
    [
      category.toUpperCase(),
      seenBy === 'server' ? 'seen by the server' : '',
      ...['', '', ''],
      `at most ${cap}${soft ? ', never BLOCK alone' : ''}`,
    ],
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

const unknownColumns: readonly Column<UnknownSignals['data'][number]>[] = [
  ['SIGNAL', 'signal'],
  ['SDK', 'sdk_version'],
  ['PLATFORM', 'platform'],
  ['EVENTS', 'events'],
  ['DEVICES', 'devices'],
  ['FIRST SEEN', 'first_seen_at'],
  ['LAST SEEN', 'last_seen_at'],
]

function toUnknownText({ days, data, left_out: leftOut, names }: UnknownSignals): string {
  if (data.length === 0) return `The catalog knows every signal of the last ${days} days.`
  const { events, values } = leftOut
  const used = `\n${names.in_last_hour} names in the last hour; ${names.limit} become columns.`
  const note =
    values === 0
      ? ''
      : `\n${values} values of ${events} events are in their bodies only: there are too many names.` +
        '\n`di signals free` makes room for names that are sent now.'
  return toColumns(unknownColumns, data) + used + note
}
