/** `di operators ...`: the people who sign in to the console. */
import { Option } from 'commander'
import { type Answer, change, command, group, read } from './commands.ts'
import { type CliContext, CliError } from './context.ts'
import { secondFactorOfAll } from './second-factor.ts'
import { type Column, toFields, toTime } from './tables.ts'

type Operator = Answer<'/operators'>['data'][number]

const columns: readonly Column<Operator>[] = [
  ['EMAIL', 'email'],
  ['NAME', 'name'],
  ['ROLE', 'role'],
  ['TENANTS', ({ tenants }) => (tenants === 'all' ? 'all' : tenants.join(','))],
  ['STATE', toState],
  ['TOTP', ({ totp }) => (totp ? 'on' : 'off')],
  ['LAST SIGN-IN', 'last_signed_in_at'],
]

export const operators = group('operators', 'who signs in to the console', [
  change(
    'invite <email>',
    'invite a person and show the link, this one time',
    ['post', '/operators/invitations'],
    {
      options: [
        new Option('--role <role>', 'viewer, analyst, engineer or admin').default('viewer'),
        ['--tenants <slugs>', 'the tenants to see, separated by commas; all without it'],
      ],
      body: ({ role, tenants }: { role: string; tenants?: string }, [email]) => {
        return { email, role, tenants: tenants === undefined ? 'all' : toSlugs(tenants) }
      },
      text: toLinkText,
    },
  ),
  command(
    'reset <email>',
    'show a link by which an operator chooses a new password; it switches TOTP off',
    [],
    async (context, [email]) => {
      const path = `${await findPath(context, email!)}/reset`
      context.out((await context.adminFetch('POST', path)) as Invited, toLinkText)
    },
  ),
  read('list', 'list the operators', '/operators', {
    columns,
    empty: 'There are no operators yet: `operators invite EMAIL --role admin`.',
  }),
  command(
    'disable <email>',
    'disable an operator; ends all their sessions',
    [],
    async (context, [email]) => {
      const path = await findPath(context, email!)
      const changed = (await context.adminFetch('PATCH', path, { disabled: true })) as Operator
      context.out(changed, (one) => toFields({ email: one.email, state: toState(one) }))
    },
  ),
  secondFactorOfAll,
])

type Invited = Pick<Answer<'/operators/invitations', 'post'>, 'url' | 'expires_at'>

function toLinkText({ url, expires_at }: Invited): string {
  return `${url}\n\nThe link works once, until ${toTime(expires_at)}, and is never shown again.`
}

const toSlugs = (text: string): string[] => text.split(',').map((slug) => slug.trim())

/** The path of the operator with an email. */
async function findPath(context: CliContext, email: string): Promise<string> {
  const { data } = (await context.adminFetch('GET', '/operators')) as Answer<'/operators'>
  const found = data.find((one) => one.email === email.trim().toLowerCase())
  if (found === undefined) throw new CliError(`There is no operator ${email}.`)
  return `/operators/${encodeURIComponent(found.operator_id)}`
}

function toState({ disabled }: Operator): string {
  return disabled ? 'disabled' : 'active'
}
