/** `di audit` and `di edges`: the audit log, and the applied revision of each edge. */
import type { Command } from 'commander'
import type { AuditRow } from '#shared/io/postgres/audit-store.ts'
import type { EdgeView } from '#shared/io/tenants/directory/list-edges.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toLimit } from './deliveries.ts'
import { toTable, toTime } from './tables.ts'

type AuditPage = { data: AuditRow[]; next_cursor: string | null }
type AuditOptions = {
  all?: true
  json?: true
  actor?: string
  action?: string
  from?: string
  to?: string
  cursor?: string
  limit: number
}

/** Adds `audit` and `edges`. */
export function registerOverview(program: Command, context: CliContext): void {
  program
    .command('audit [slug]')
    .description('the audit log of a tenant, or of operators and sign-ins; newest first')
    .option('--all', 'the whole log: operators, sign-ins and every tenant')
    .option('--actor <email>', "who: an operator's email, admin, system or unknown")
    .option('--action <actions>', 'what: sql.queried, or several separated by commas')
    .option('--from <instant>', 'entries written at this ISO-8601 instant or later')
    .option('--to <instant>', 'entries written before it')
    .option('--cursor <cursor>', '`next_cursor` of the previous page')
    .option('--limit <n>', 'at most this many', toLimit, 100)
    .option('--json', 'print one JSON document')
    .action(async (slug: string | undefined, options: AuditOptions) => {
      const { all = false, json: _, limit, ...filters } = options
      if (all && slug !== undefined) throw new CliError('Give a tenant or --all, not both.')
      const query = new URLSearchParams({
        ...filters,
        limit: String(limit),
        ...(all ? { tenants: 'all' } : {}),
      })
      const of = slug === undefined ? '' : toTenantPath(slug)
      const page = (await context.adminFetch('GET', `${of}/audit?${query}`)) as AuditPage
      context.out(page, (shown) => toAuditText(shown, all))
    })
  program
    .command('edges')
    .description('the edges and the revision of the tenant directory that each has applied')
    .option('--json', 'print one JSON document')
    .action(async () => {
      const edges = await context.adminFetch('GET', '/edges')
      context.out(edges as { revision: number; data: EdgeView[] }, toEdgeTable)
    })
}

/** @param all whether entries of several tenants are shown together */
function toAuditText({ data, next_cursor }: AuditPage, all: boolean): string {
  if (data.length === 0) return 'The audit log has no such entries.'
  const table = toTable(
    ['ENTRY', 'AT', 'WHO', ...(all ? ['TENANT'] : []), 'WHAT', 'BEFORE', 'AFTER'],
    data.map((row) => [
      String(row.audit_id),
      toTime(row.at),
      row.actor,
      ...(all ? [row.tenant_id ?? '-'] : []),
      row.action,
      row.before === null ? '-' : JSON.stringify(row.before),
      row.after === null ? '-' : JSON.stringify(row.after),
    ]),
  )
  return next_cursor === null ? table : `${table}\n\nMore: --cursor ${next_cursor}`
}

function toEdgeTable({ revision, data }: { revision: number; data: EdgeView[] }): string {
  if (data.length === 0) return 'No edge has announced itself.'
  return toTable(
    ['EDGE', 'APPLIED', 'BEHIND', 'ANNOUNCED'],
    data.map((edge) => [
      edge.edge_id,
      String(edge.applied_revision),
      String(Math.max(0, revision - edge.applied_revision)),
      toTime(edge.announced_at),
    ]),
  )
}
