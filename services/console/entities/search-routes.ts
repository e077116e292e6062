/** One search for every id: what the operator may see, by exact id or by its beginning. */
import { searchLimits } from '#shared/core/base/limits/alerts.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import { seesTenant } from '#shared/core/operators/roles.ts'
import { searchIds } from '#shared/io/alerts/search-store.ts'
import type { Found, LinkStore } from '#shared/io/devices/link-store.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { EventStore } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { searchQuery, searchSchema } from './entity-schemas.ts'

type SearchDeps = {
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
export function addSearchRoutes(
  app: ConsoleApp,
  deps: SearchDeps & { limited: QueryLimiter },
): void {
  const search = deps.limited('search', searchLimits, async ({ text, scope }: Search) => {
    const [ids, telemetry] = await Promise.all([
      searchIds(deps.postgres, { text, scope, limit: foundMax }),
      searchTelemetry(deps, text, scope),
    ])
    // The phone of a correction may be one that the service knows too.
    const found = new Map(
      [...ids, ...telemetry.found].map((one) => [`${one.kind} ${one.tenantId} ${one.id}`, one]),
    )
    return { found: [...found.values()], partial: telemetry.partial }
  })
  app.get(
    '/search',
    {
      schema: {
        operationId: 'search',
        tags: ['Entities'],
        summary:
          'Find tenants, alerts, cases, deliveries, events, devices, users, phones and sessions by id',
        querystring: searchQuery,
        response: { 200: searchSchema },
      },
    },
    async ({ query: { q: text, tenant_id: tenantId }, principal }) => {
      const own = tenantsOf(principal)
      const scope = tenantId === undefined ? own : seesTenant(own, tenantId) ? [tenantId] : []
      const { found, partial } = await search({ tenantId, text, scope })
      const data = found.map(({ kind, tenantId, id }) => ({ kind, tenant_id: tenantId, id }))
      return { data, partial }
    },
  )
}

type Search = { tenantId: string | undefined; text: string; scope: TenantScope }
type FoundEvent = { kind: 'event'; tenantId: string; id: string }

const nothing = { found: [], partial: false }

/** Partial when ClickHouse cannot answer in time, or there are more tenants than are searched. */
async function searchTelemetry(
  deps: SearchDeps,
  text: string,
  scope: TenantScope,
): Promise<{ found: (Found | FoundEvent)[]; partial: boolean }> {
  try {
    if (eventIdPattern.test(text)) {
      const event = await deps.findEvent(text)
      if (event === null || !seesTenant(scope, event.tenantId)) return nothing
      return { found: [{ kind: 'event', tenantId: event.tenantId, id: text }], partial: false }
    }
    const tenants = createTenantStore(deps.postgres)
    const listed = await tenants.listTenants({ limit: tenantsMax + 1, after: undefined, scope })
    const tenantIds = listed.slice(0, tenantsMax).map((tenant) => tenant.tenant_id)
    if (tenantIds.length === 0) return nothing
    const found = await deps.links.findByText({ tenantIds, text, limit: foundMax })
    return { found, partial: listed.length > tenantsMax }
  } catch (error) {
    deps.log.warn({ err: error }, 'the telemetry could not be searched')
    return { found: [], partial: true }
  }
}
