/** `di lists ...`: the allow and deny lists of a tenant's devices and users. */
import type { Command } from 'commander'
import { listPageMax } from '#shared/core/base/limits/lists.ts'
import type { ListEntryView } from '#shared/io/lists/list-store.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

type Listed = { data: ListEntryView[]; total: number; next_cursor: string | null }
type Which = { device?: string; user?: string; allow?: true; deny?: true }

const pathOf = (slug: string) => `${toTenantPath(slug)}/lists`

/** Adds the group `lists`. */
export function registerLists(program: Command, context: CliContext): void {
  const lists = program.command('lists').description('allow and deny lists of devices and users')
  addWhich(lists.command('add <slug>').description('put a device or a user on a list'))
    .requiredOption('--reason <code>', 'why, as a code such as chargeback')
    .option('--expires <time>', 'it has no effect from this time on, such as 2026-12-31')
    .action(async (slug: string, options: Which & { reason: string; expires?: string }) => {
      const { reason, expires } = options
      const entry = { ...requireOne(options), reason, expires_at: expires ?? null }
      const added = await context.adminFetch('POST', pathOf(slug), entry)
      context.out(added as ListEntryView, toEntryText)
    })
  addWhich(lists.command('remove <slug>').description('take a device or a user off a list')).action(
    async (slug: string, options: Which) => {
      const which = requireOne(options)
      const { data } = await readPage(context, slug, which)
      if (data[0] === undefined) throw new CliError(`It is not on the ${which.list} list.`)
      await context.adminFetch('DELETE', `${pathOf(slug)}/${data[0].entry_id}`)
      context.out(data[0], toEntryText)
    },
  )
  addWhich(lists.command('list <slug>').description('list the newest entries')).action(
    async (slug: string, options: Which) => {
      const filters = toFilters(options)
      const page = await readPage(context, slug, { ...filters, limit: String(listPageMax) })
      context.out(page, toListText)
    },
  )
}

const addWhich = (command: Command): Command =>
  command
    .option('--device <id>', 'this device')
    .option('--user <id>', 'this user or account')
    .option('--allow', 'the allow list')
    .option('--deny', 'the deny list')
    .option('--json', 'print one JSON document')

/** @throws CliError when both of two options are given that exclude each other */
function toFilters({ device, user, allow, deny }: Which): Record<string, string> {
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
function requireOne(options: Which): Record<string, string> {
  const filters = toFilters(options)
  if (filters.id === undefined) throw new CliError('Give one of --device ID and --user ID.')
  if (filters.list === undefined) throw new CliError('Give one of --allow and --deny.')
  return filters
}

async function readPage(
  context: CliContext,
  slug: string,
  query: Record<string, string>,
): Promise<Listed> {
  const path = `${pathOf(slug)}?${new URLSearchParams(query)}`
  return (await context.adminFetch('GET', path)) as Listed
}

const toEntryText = ({ entry_id, list, kind, id, reason, expires_at }: ListEntryView) =>
  toFields({
    entry_id,
    list,
    [kind]: id,
    reason,
    expires_at: expires_at ?? 'never',
  })

function toListText({ data, total }: Listed): string {
  if (data.length === 0) return 'There are no entries.'
  const table = toTable(
    ['LIST', 'KIND', 'ID', 'REASON', 'EXPIRES', 'ADDED', 'BY'],
    data.map((one) => [
      one.list,
      one.kind,
      one.id,
      one.reason,
      one.expires_at === null
        ? 'never'
        : `${toTime(one.expires_at)}${one.expired ? ' (over)' : ''}`,
      toTime(one.created_at),
      one.created_by,
    ]),
  )
  return data.length === total ? table : `${table}\n\n${data.length} of ${total} entries.`
}
