/** `di operators ...`: the people who sign in to the console. */
import type { Command } from 'commander'
import type { Role, TenantScope } from '#shared/core/operators/roles.ts'
import { type CliContext, CliError } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

type Invited = { invitation_id: string; url: string; expires_at: string }
type Listed = {
  operator_id: string
  email: string
  name: string
  role: Role
  tenants: TenantScope
  totp: boolean
  disabled: boolean
  created_by: string
  last_signed_in_at: string | null
}

/** Adds the group `operators`. */
export function registerOperators(program: Command, context: CliContext): void {
  const operators = program.command('operators').description('who signs in to the console')
  operators
    .command('invite <email>')
    .description('invite a person and show the link, this one time')
    .option('--role <role>', 'viewer, analyst, engineer or admin', 'viewer')
    .option('--tenants <slugs>', 'the tenants to see, separated by commas; all without it')
    .option('--json', 'print one JSON document')
    .action(async (email: string, { role, tenants }: { role: string; tenants?: string }) => {
      const body = { email, role, tenants: tenants === undefined ? 'all' : toSlugs(tenants) }
      const invited = await context.adminFetch('POST', '/operators/invitations', body)
      context.out(invited as Invited, toLinkText)
    })
  operators
    .command('reset <email>')
    .description('show a link by which an operator chooses a new password; it switches TOTP off')
    .option('--json', 'print one JSON document')
    .action(async (email: string) => {
      const { operator_id: id } = await findOperator(context, email)
      const path = `/operators/${encodeURIComponent(id)}/reset`
      context.out((await context.adminFetch('POST', path)) as Invited, toLinkText)
    })
  operators
    .command('list')
    .description('list the operators')
    .option('--json', 'print one JSON document')
    .action(async () => context.out(await listOperators(context), toText))
  operators
    .command('disable <email>')
    .description('disable an operator; ends all their sessions')
    .option('--json', 'print one JSON document')
    .action(async (email: string) => {
      const operator = await findOperator(context, email)
      const path = `/operators/${encodeURIComponent(operator.operator_id)}`
      const changed = (await context.adminFetch('PATCH', path, { disabled: true })) as Listed
      context.out(changed, (one) => toFields({ email: one.email, state: toState(one) }))
    })
}

const toLinkText = ({ url, expires_at }: Invited): string =>
  `${url}\n\nThe link works once, until ${toTime(expires_at)}, and is never shown again.`

const toSlugs = (text: string): string[] => text.split(',').map((slug) => slug.trim())

async function listOperators(context: CliContext): Promise<{ data: Listed[] }> {
  return (await context.adminFetch('GET', '/operators')) as { data: Listed[] }
}

async function findOperator(context: CliContext, email: string): Promise<Listed> {
  const { data } = await listOperators(context)
  const found = data.find((one) => one.email === email.trim().toLowerCase())
  if (found === undefined) throw new CliError(`There is no operator ${email}.`)
  return found
}

const toState = ({ disabled }: Listed): string => (disabled ? 'disabled' : 'active')

function toText({ data }: { data: Listed[] }): string {
  if (data.length === 0) return 'There are no operators yet: `operators invite EMAIL --role admin`.'
  return toTable(
    ['EMAIL', 'NAME', 'ROLE', 'TENANTS', 'STATE', 'TOTP', 'LAST SIGN-IN'],
    data.map((one) => [
      one.email,
      one.name,
      one.role,
      one.tenants === 'all' ? 'all' : one.tenants.join(','),
      toState(one),
      one.totp ? 'on' : 'off',
      toTime(one.last_signed_in_at),
    ]),
  )
}
