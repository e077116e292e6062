/** One search for every id: what the operator may see, by exact id or by its beginning. */
import type { TenantScope } from '#shared/core/operators/roles.ts'
import { seesTenant } from '#shared/core/operators/roles.ts'
import { type FoundId, searchIds } from '#shared/io/alerts/search-store.ts'
import { describeFailure } from '#shared/io/clickhouse/clickhouse.ts'
import type { Found, LinkStore } from '#shared/io/devices/link-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { EventStore } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { searchQuery, searchSchema } from './entity-schemas.ts'

export type SearchDeps = {
  postgres: Postgres
  links: Pick<LinkStore, 'findByText'>
  findEvent: EventStore['findEvent']
  log: Log
}

/** Results of each kind, and tenants whose devices and users are searched. */
const foundMax = 10
const tenantsMax = 1_000

const eventIdPattern = /^evt_[A-Za-z0-9_-]{22}$/

/** Adds the route. */
export function addSearchRoutes(app: ConsoleApp, deps: SearchDeps): void {
  app.get(
    '/search',
    {
      schema: {
        summary: 'Find tenants, alerts, deliveries, events, devices, users and sessions by id',
        querystring: searchQuery,
        response: { 200: searchSchema },
      },
    },
    async ({ query: { q: text, tenant_id: tenantId }, principal }) => {
      const own = tenantsOf(principal)
      const scope = tenantId === undefined ? own : seesTenant(own, tenantId) ? [tenantId] : []
      const [ids, entities] = await Promise.all([
        searchIds(deps.postgres, { text, scope, limit: foundMax }),
        searchTelemetry(deps, text, scope),
      ])
      const data = [...ids, ...(entities ?? [])].map((one) => ({
        kind: one.kind,
        tenant_id: one.tenantId,
        id: one.id,
      }))
      return { data, partial: entities === null }
    },
  )
}

type FoundEvent = { kind: 'event'; tenantId: string; id: string }

/** @returns null when ClickHouse cannot answer in time */
async function searchTelemetry(
  deps: SearchDeps,
  text: string,
  scope: TenantScope,
): Promise<(Found | FoundId | FoundEvent)[] | null> {
  try {
    if (eventIdPattern.test(text)) {
      const event = await deps.findEvent(text)
      if (event === null || !seesTenant(scope, event.tenantId)) return []
      return [{ kind: 'event', tenantId: event.tenantId, id: text }]
    }
    const tenants = createTenantStore(deps.postgres)
    const listed = await tenants.listTenants({ limit: tenantsMax, after: undefined, scope })
    const tenantIds = listed.map((tenant) => tenant.tenant_id)
    if (tenantIds.length === 0) return []
    return await deps.links.findByText({ tenantIds, text, limit: foundMax })
  } catch (error) {
    deps.log.warn({ err: describeFailure(error) }, 'the telemetry could not be searched')
    return null
  }
}
