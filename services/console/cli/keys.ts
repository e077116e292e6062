/** `di keys ...`: named API keys of a tenant, with scopes. */
import type { Command } from 'commander'
import { apiKeyScopes } from '#shared/core/tenants/api-key-scopes.ts'
import type { CreatedKey, listKeys } from '../tenants/manage-keys.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

type Listed = Awaited<ReturnType<typeof listKeys>>

const pathOf = (slug: string) => `${toTenantPath(slug)}/keys`

/** Adds the group `keys`. */
export function registerKeys(program: Command, context: CliContext): void {
  const keys = program.command('keys').description('named API keys of a tenant')
  keys
    .command('create <slug>')
    .description('create a key and show it, once')
    .requiredOption(
      '--scope <scope...>',
      `what the key may do: ${apiKeyScopes.join(', ')}; every key reads`,
    )
    .option('--name <name>', 'the name within the tenant', 'key')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { name, scope }: { name: string; scope: string[] }) => {
      const scopes = scope.flatMap((text) => text.split(','))
      const created = await context.adminFetch('POST', pathOf(slug), { name, scopes })
      context.out(
        created as CreatedKey,
        ({ tenant_id, name, scopes, api_key }) =>
          `${toFields({ tenant_id, name, scopes: scopes.join(', '), api_key })}\n\n` +
          'Keep it now: the key is never shown again.',
      )
    })
  keys
    .command('list <slug>')
    .description('list the named keys of a tenant')
    .option('--json', 'print one JSON document')
    .action(async (slug: string) => {
      const listed = (await context.adminFetch('GET', pathOf(slug))) as Listed
      context.out(listed, ({ data }) =>
        data.length === 0
          ? 'There are no named keys yet.'
          : toTable(
              ['NAME', 'KEY', 'SCOPES', 'CREATED', 'BY', 'LAST USED'],
              data.map((one) => [
                one.name,
                `${one.prefix}...${one.last4}`,
                one.scopes.join(', '),
                toTime(one.created_at),
                one.created_by,
                toTime(one.last_used_at),
              ]),
            ),
      )
    })
  keys
    .command('remove <slug> <name>')
    .description('remove a key; it stops working at once')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, name: string) => {
      const path = `${pathOf(slug)}/${encodeURIComponent(name)}`
      const removed = await context.adminFetch('DELETE', path)
      context.out(removed as { tenant_id: string; name: string }, (one) => toFields(one))
    })
}
