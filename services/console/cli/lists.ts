/** `di lists ...`: the allow and deny lists of a tenant's devices and users. */
import { Option } from 'commander'
import { listPageMax } from '#shared/core/base/limits/lists.ts'
import { type Answer, change, command, group, read, toPath, toQuery } from './commands.ts'
import { CliError } from './context.ts'
import { toFields, toTime } from './tables.ts'

const path = '/tenants/{tenant_id}/lists'

type Listed = Answer<typeof path>
type ListEntry = Listed['data'][number]
type Which = { device?: string; user?: string; allow?: true; deny?: true }

const which = [
  ['--device <id>', 'this device'],
  ['--user <id>', 'this user or account'],
  ['--allow', 'the allow list'],
  ['--deny', 'the deny list'],
] as const

export const lists = group('lists', 'allow and deny lists of devices and users', [
  change('add <slug>', 'put a device or a user on a list', ['post', path], {
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
    'take a device or a user off a list',
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

type Filters = { list?: 'allow' | 'deny'; kind?: 'user' | 'device'; id?: string }

/** @throws CliError when both of two options are given that exclude each other */
function toFilters({ device, user, allow, deny }: Which): Filters {
  if (device !== undefined && user !== undefined) {
    throw new CliError('Give one of --device ID and --user ID.')
  }
  if (allow && deny) throw new CliError('Give one of --allow and --deny.')
  const id = device ?? user
  return {
    ...(allow || deny ? { list: allow ? 'allow' : 'deny' } : {}),
    ...(id === undefined ? {} : { kind: device === undefined ? 'user' : 'device', id }),
  }
}

/** @throws CliError unless the options name one entry */
function requireOne(options: Which): Filters {
  const filters = toFilters(options)
  if (filters.id === undefined) throw new CliError('Give one of --device ID and --user ID.')
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
