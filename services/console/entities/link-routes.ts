/** Devices and users that are linked to another one. */
import type { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { linkedMax, linkLimits } from '#shared/core/base/limits/entities.ts'
import { toLinked } from '#shared/core/devices/links.ts'
import { readNodeAlerts } from '#shared/io/alerts/verdict-counts.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { LinkStore, Links } from '#shared/io/devices/link-store.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { deviceParams, linksSchema, userParams } from './entity-schemas.ts'

export type LinkRouteDeps = { postgres: Postgres; links: LinkStore; limited: QueryLimiter }

const reject = rejectUnavailable('The links cannot be read at the moment.')

type Query =
  | { kind: 'device'; tenantId: string; deviceId: string }
  | { kind: 'user'; tenantId: string; userId: string }

/** Adds the routes. */
export function addLinkRoutes(app: ConsoleApp, { postgres, links, limited }: LinkRouteDeps): void {
  const find = limited('links', linkLimits, (query: Query) =>
    query.kind === 'device' ? links.findLinkedDevices(query) : links.findLinkedUsers(query),
  )
  app.get(
    '/tenants/:tenant_id/devices/:device_id/links',
    {
      schema: {
        operationId: 'listLinkedDevices',
        tags: ['Entities'],
        summary: 'Devices that share users or sessions with a device',
        params: deviceParams,
        response: { 200: linksSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, device_id: deviceId } }) => {
      await requireTenant(postgres, tenantId)
      const found = await find({ kind: 'device', tenantId, deviceId }).catch(reject)
      return toAnswer(postgres, { tenantId, kind: 'device', id: deviceId }, found)
    },
  )
  app.get(
    '/tenants/:tenant_id/users/:user_id/links',
    {
      schema: {
        operationId: 'listLinkedUsers',
        tags: ['Entities'],
        summary: 'Users that share devices with a user',
        params: userParams,
        response: { 200: linksSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, user_id: userId } }) => {
      await requireTenant(postgres, tenantId)
      const found = await find({ kind: 'user', tenantId, userId }).catch(reject)
      return toAnswer(postgres, { tenantId, kind: 'user', id: userId }, found)
    },
  )
}

export type LinksAnswer = z.infer<typeof linksSchema>

type Subject = { tenantId: string; kind: 'device' | 'user'; id: string }

async function toAnswer(db: Queryable, subject: Subject, links: Links): Promise<LinksAnswer> {
  const { linked, total } = toLinked(links.pairs, links.sessionPairs)
  const { tenantId, kind, id } = subject
  const own = { kind, ids: [id, ...linked.map((one) => one.id)] }
  const sharedIds = new Set(linked.flatMap(({ shared }) => shared.map((one) => one.id)))
  const common = {
    kind: kind === 'device' ? 'user' : 'device',
    ids: [...sharedIds].slice(0, linkedMax),
  } as const
  const alerts = await Promise.all(
    [own, common].map(async (of) => {
      const found = await readNodeAlerts(db, tenantId, of)
      return found.map(({ verdicts, riskScore, ...one }) => ({
        kind: of.kind,
        id: one.id,
        risk_score: riskScore,
        ...verdicts,
      }))
    }),
  )
  return {
    data: linked.map(({ id, lastSeenAtMs, shared, sharedTotal, sessions }) => ({
      id,
      last_seen_at: toIso(lastSeenAtMs),
      shared: shared.map((one) => ({ id: one.id, last_seen_at: toIso(one.lastSeenAtMs) })),
      shared_total: sharedTotal,
      sessions,
    })),
    alerts: alerts.flat(),
    total,
    followed: { read: links.followed, of: links.followedOf },
    complete: links.complete,
    sessions_searched: links.sessionsSearched,
  }
}
