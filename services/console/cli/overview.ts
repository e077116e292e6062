/** `di audit` and `di edges`: the audit log, and the applied revision of each edge. */
import type { Command } from 'commander'
import type { AuditRow } from '#shared/io/postgres/audit-store.ts'
import type { EdgeView } from '#shared/io/tenants/directory/list-edges.ts'
import { type CliContext, toTenantPath } from './context.ts'
import { toLimit } from './deliveries.ts'
import { toTable, toTime } from './tables.ts'

type AuditPage = { data: AuditRow[]; next: number | null }

/** Adds `audit` and `edges`. */
export function registerOverview(program: Command, context: CliContext): void {
  program
    .command('audit [slug]')
    .description('the audit log of a tenant, or of operators and keys; newest first')
    .option('--limit <n>', 'at most this many', toLimit, 100)
    .option('--json', 'print one JSON document')
    .action(async (slug: string | undefined, options: { limit: number }) => {
      const of = slug === undefined ? '' : toTenantPath(slug)
      const path = `${of}/audit?limit=${options.limit}`
      context.out((await context.adminFetch('GET', path)) as AuditPage, toAuditTable)
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

function toAuditTable({ data }: AuditPage): string {
  if (data.length === 0) return 'The audit log has no entries.'
  return toTable(
    ['AT', 'WHO', 'WHAT', 'BEFORE', 'AFTER'],
    data.map((row) => [
      toTime(row.at),
      row.actor,
      row.action,
      row.before === null ? '-' : JSON.stringify(row.before),
      row.after === null ? '-' : JSON.stringify(row.after),
    ]),
  )
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
