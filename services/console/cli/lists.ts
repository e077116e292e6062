/** `di lists ...`: the allow and deny lists of a tenant's devices, users and connections. */
import { Option } from 'commander'
import { listPageMax } from '#shared/core/base/limits/lists.ts'
import { type Answer, change, command, group, read, toPath, toQuery } from './commands.ts'
import { CliError } from './context.ts'
import { toFields, toTime } from './tables.ts'

const path = '/tenants/{tenant_id}/lists'

type Listed = Answer<typeof path>
type ListEntry = Listed['data'][number]
type ListKind = ListEntry['kind']
type Which = Partial<Record<ListKind, string>> & { allow?: true; deny?: true }

const which = [
  ['--device <id>', 'this device'],
  ['--user <id>', 'this user or account'],
  ['--network <cidr>', 'this network, such as 8.8.8.0/24, or address'],
  ['--asn <number>', 'this operator of networks, such as 64500'],
  ['--country <code>', 'this country, such as DE'],
  ['--allow', 'the allow list'],
  ['--deny', 'the deny list'],
] as const

export const lists = group('lists', 'allow and deny lists of devices, users and connections', [
  change('add <slug>', 'put a device, a user or a connection on a list', ['post', path], {
    options: [
      ...which,
      new Option('--reason <code>', 'why, as a code such as chargeback').makeOptionMandatory(),
      ['--expires <time>', 'it has no effect from this time on, such as 2026-12-31; or never'],
    ],
    body: (options: Which & { reason: string; expires?: string }) => {
      const { reason, expires } = options
      // Left out, an entry that is there keeps its expiry.
      const expires_at = expires === 'never' ? null : expires
      return { ...requireOne(options), reason, expires_at }
    },
    text: toEntryText,
  }),
  command<Which>(
    'remove <slug>',
    'take a device, a user or a connection off a list',
    which,
    async (context, args, options) => {
      const filters = requireOne(options)
      const base = toPath(path, args)
      const page = await context.adminFetch('GET', `${base}${toQuery(filters)}`)
      const [entry] = (page as Listed).data
      if (entry === undefined) throw new CliError(`It is not on the ${filters.list} list.`)
      await context.adminFetch('DELETE', `${base}/${entry.entry_id}`)
      context.out(entry, toEntryText)
    },
  ),
  read('list <slug>', 'list the newest entries', path, {
    options: which,
    query: (options: Which) => ({ ...toFilters(options), limit: listPageMax }),
    columns: [
      ['LIST', 'list'],
      ['KIND', 'kind'],
      ['ID', 'id'],
      ['REASON', 'reason'],
      ['EXPIRES', toExpiry],
      ['ADDED', 'created_at'],
      ['BY', 'created_by'],
    ],
    empty: 'There are no entries.',
    note: ({ data, total }) => (data.length === total ? '' : `${data.length} of ${total} entries.`),
  }),
])

type Filters = { list?: 'allow' | 'deny'; kind?: ListKind; id?: string }

const kinds: readonly ListKind[] = ['device', 'user', 'network', 'asn', 'country']
const oneKind = 'Give one of --device ID, --user ID, --network CIDR, --asn N and --country CC.'

/** @throws CliError when several of the options are given that exclude each other */
function toFilters(options: Which): Filters {
  const given = kinds.flatMap((kind) =>
    options[kind] === undefined ? [] : [{ kind, id: options[kind] }],
  )
  if (given.length > 1) throw new CliError(oneKind)
  const { allow, deny } = options
  if (allow && deny) throw new CliError('Give one of --allow and --deny.')
  return { ...(allow || deny ? { list: allow ? 'allow' : 'deny' } : {}), ...given[0] }
}

/** @throws CliError unless the options name one entry */
function requireOne(options: Which): Filters {
  const filters = toFilters(options)
  if (filters.id === undefined) throw new CliError(oneKind)
  if (filters.list === undefined) throw new CliError('Give one of --allow and --deny.')
  return filters
}

function toExpiry({ expires_at: at, expired }: ListEntry): string {
  return at === null ? 'never' : `${toTime(at)}${expired ? ' (over)' : ''}`
}

function toEntryText(entry: Omit<ListEntry, 'expired'>): string {
  const { entry_id, list, kind, id, reason, expires_at } = entry
  return toFields({ entry_id, list, [kind]: id, reason, expires_at: expires_at ?? 'never' })
}
