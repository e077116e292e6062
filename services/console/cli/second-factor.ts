/** `di operators second-factor` and `di tenants second-factor`: whom a second factor is asked of. */
import { type Answer, command } from './commands.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields } from './tables.ts'

type Rule = Answer<'/second-factor'>
type Options = { require?: true; off?: true }

const options = [
  [
    '--require',
    'ask for it: whoever has none sets it up at the next sign-in, and can do nothing else',
  ],
  ['--off', 'do not ask for it'],
] as const

async function run({ context, base }: { context: CliContext; base: string }, given: Options) {
  const { require: required, off } = given
  if (required && off) throw new CliError('Give one of --require and --off.')
  const path = `${base}/second-factor`
  const rule =
    required || off
      ? await context.adminFetch('PUT', path, { required: required === true })
      : await context.adminFetch('GET', path)
  context.out(rule as Rule, toText)
}

function toText({ tenant_id: tenant, required, since, required_of_all: ofAll }: Rule): string {
  const who = tenant === null ? 'all operators' : `whoever may see ${tenant}`
  return toFields({
    'second factor': required ? 'required' : 'not required',
    of: who,
    since,
    ...(tenant !== null && ofAll ? { 'of all operators': 'required' } : {}),
  })
}

/** Of the group `operators`. */
export const secondFactorOfAll = command<Options>(
  'second-factor',
  'show or set whether all operators need a second factor; single sign-on is exempt',
  options,
  (context, _, given) => run({ context, base: '' }, given),
)

/** Of the group `tenants`. */
export const secondFactorOfTenant = command<Options>(
  'second-factor <slug>',
  'show or set whether whoever may see the tenant needs a second factor; single sign-on is exempt',
  options,
  (context, [slug], given) => run({ context, base: toTenantPath(slug!) }, given),
)
