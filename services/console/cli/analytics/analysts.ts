/** `di analysts ...`: the users that may query a tenant's analytics views in ClickHouse. */
import type { Command } from 'commander'
import type { CreatedAnalyst, listTenantAnalysts } from '../../analytics/manage-analysts.ts'
import { type CliContext, toTenantPath } from '../context.ts'
import { toFields, toTable, toTime } from '../tables.ts'

type Listed = Awaited<ReturnType<typeof listTenantAnalysts>>

const pathOf = (slug: string) => `${toTenantPath(slug)}/analysts`

/** Adds the group `analysts`. */
export function registerAnalysts(program: Command, context: CliContext): void {
  const analysts = program
    .command('analysts')
    .description('users who may query the analytics views of a tenant')
  analysts
    .command('create <slug>')
    .description('create an analyst and show the password, once')
    .option('--name <name>', 'the name within the tenant', 'analyst')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, { name }: { name: string }) => {
      const created = await context.adminFetch('POST', pathOf(slug), { name })
      context.out(created as CreatedAnalyst, toCreatedText)
    })
  analysts
    .command('reset <slug> <name>')
    .description('give an analyst a new password and show it, once; the old one stops working')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, name: string) => {
      const path = `${pathOf(slug)}/${encodeURIComponent(name)}/password`
      context.out((await context.adminFetch('POST', path, {})) as CreatedAnalyst, toCreatedText)
    })
  analysts
    .command('list <slug>')
    .description('list the analysts of a tenant')
    .option('--json', 'print one JSON document')
    .action(async (slug: string) => {
      const listed = (await context.adminFetch('GET', pathOf(slug))) as Listed
      context.out(listed, ({ data }) =>
        data.length === 0
          ? 'There are no analysts yet.'
          : toTable(
              ['NAME', 'USER', 'CREATED', 'BY'],
              data.map((one) => [one.name, one.user, toTime(one.created_at), one.created_by]),
            ),
      )
    })
  analysts
    .command('remove <slug> <name>')
    .description('remove an analyst; the password stops working at once')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, name: string) => {
      const path = `${pathOf(slug)}/${encodeURIComponent(name)}`
      const removed = await context.adminFetch('DELETE', path)
      context.out(removed as { tenant_id: string; name: string }, (one) => toFields(one))
    })
}

function toCreatedText({ warning, ...analyst }: CreatedAnalyst): string {
  const kept = `${toFields(analyst)}\n\nKeep it now: the password is never shown again.`
  return warning === undefined ? kept : `${kept}\nWarning: ${warning}`
}
