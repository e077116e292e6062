/** `di audit` and `di edges`: the audit log, and the applied revision of each edge. */
import { type Answer, command, cursor, limit, read, toMore, toQuery, toText } from './commands.ts'
import { CliError, toTenantPath } from './context.ts'
import { type Column, toTime } from './tables.ts'

type AuditPage = Answer<'/audit'>
type AuditOptions = { all?: true }

const toJson = (value: unknown) => (value === null ? null : JSON.stringify(value))

const auditColumns: readonly Column<AuditPage['data'][number]>[] = [
  ['ENTRY', 'audit_id'],
  ['AT', ({ at }) => toTime(at)],
  ['WHO', 'actor'],
  ['TENANT', 'tenant_id'],
  ['WHAT', 'action'],
  ['BEFORE', ({ before }) => toJson(before)],
  ['AFTER', ({ after }) => toJson(after)],
]

export const audit = command<AuditOptions>(
  'audit [slug]',
  'the audit log of a tenant, or of operators and sign-ins; newest first',
  [
    ['--all', 'the whole log: operators, sign-ins and every tenant'],
    ['--actor <email>', "who: an operator's email, admin, system or unknown"],
    ['--action <actions>', 'what: sql.queried, or several separated by commas'],
    ['--from <instant>', 'entries written at this ISO-8601 instant or later'],
    ['--to <instant>', 'entries written before it'],
    cursor,
    limit(100),
  ],
  async (context, [slug], { all = false, ...filters }) => {
    if (all && slug !== undefined) throw new CliError('Give a tenant or --all, not both.')
    const query = toQuery({ ...filters, tenants: all ? 'all' : undefined })
    const of = slug === undefined ? '' : toTenantPath(slug)
    const page = (await context.adminFetch('GET', `${of}/audit${query}`)) as AuditPage
    // Entries of one log have one tenant.
    const columns = auditColumns.filter(([header]) => all || header !== 'TENANT')
    const shown = { columns, empty: 'The audit log has no such entries.', note: toMore }
    context.out(page, (answer) => toText<AuditPage>(shown, answer))
  },
)

export const edges = read(
  'edges',
  'the edges and the revision of the tenant directory that each has applied',
  '/edges',
  {
    columns: ({ revision }) => [
      ['EDGE', 'edge_id'],
      ['APPLIED', 'applied_revision'],
      ['BEHIND', (edge) => Math.max(0, revision - edge.applied_revision)],
      ['ANNOUNCED', 'announced_at'],
    ],
    empty: 'No edge has announced itself.',
  },
)
