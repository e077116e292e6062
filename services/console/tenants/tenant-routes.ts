/** Routes of tenants: create, list, show, set rates, suspend, resume. */
import type { Rate } from '#shared/core/http/rate-limit.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import {
  createdTenantSchema,
  createTenantBody,
  listTenantsQuery,
  ratesBody,
  tenantParams,
  tenantSchema,
  tenantStatusSchema,
  tenantsSchema,
} from '../http/schemas.ts'
import { tenantNotFound } from './directory.ts'
import { createTenant, type ManageDeps, setTenantRates, setTenantStatus } from './manage-tenants.ts'

/** Adds the routes. */
export function addTenantRoutes(app: ConsoleApp, deps: ManageDeps): void {
  const store = createTenantStore(deps.postgres)
  app.post(
    '/tenants',
    {
      schema: {
        operationId: 'createTenant',
        idempotency: 'refused',
        tags: ['Tenants'],
        summary: 'Create a tenant',
        body: createTenantBody,
        problems: ['tenant_exists', 'conflict', 'webhook_url_refused'],
        response: { 201: createdTenantSchema },
      },
    },
    async (request, reply) => {
      const { body, principal } = request
      const created = await createTenant(deps, {
        tenantId: body.tenant_id,
        name: body.name,
        environment: body.environment,
        webhookUrl: body.webhook_url ?? null,
        actor: actorOf(principal),
      })
      return reply.code(201).send(created)
    },
  )
  app.get(
    '/tenants',
    {
      schema: {
        operationId: 'listTenants',
        tags: ['Tenants'],
        summary: 'List tenants by id',
        querystring: listTenantsQuery,
        response: { 200: tenantsSchema },
      },
    },
    async ({ query: { limit, after }, principal }) => {
      const scope = tenantsOf(principal)
      const [data, total] = await Promise.all([
        store.listTenants({ limit, after, scope }),
        store.countTenants(scope),
      ])
      return { data, total, next: data.length === limit ? data.at(-1)!.tenant_id : null }
    },
  )
  app.get(
    '/tenants/:tenant_id',
    {
      schema: {
        operationId: 'findTenant',
        conditional: true,
        tags: ['Tenants'],
        summary: 'Show a tenant, without secrets',
        params: tenantParams,
        response: { 200: tenantSchema },
      },
    },
    async ({ params }) => {
      const tenant = await store.findTenant(params.tenant_id)
      if (tenant === null) throw tenantNotFound(params.tenant_id)
      return tenant
    },
  )
  app.put(
    '/tenants/:tenant_id/rates',
    {
      schema: {
        operationId: 'setTenantRates',
        tags: ['Tenants'],
        summary: 'Set the rates of a tenant: requests, bytes, and its share of the stream',
        params: tenantParams,
        body: ratesBody,
        problems: ['conflict'],
        response: { 200: tenantSchema },
      },
    },
    async ({ params, body: { ingest_rate, ingest_bytes, ingest_share, rest_rate }, principal }) =>
      setTenantRates(deps, {
        tenantId: params.tenant_id,
        actor: actorOf(principal),
        ...(ingest_rate === undefined ? {} : { ingest: toRate(ingest_rate) }),
        ...(ingest_bytes === undefined ? {} : { ingestBytes: toRate(ingest_bytes) }),
        ...(ingest_share === undefined ? {} : { ingestShare: ingest_share }),
        ...(rest_rate === undefined ? {} : { rest: toRate(rest_rate) }),
      }),
  )
  for (const [verb, status, summary] of [
    ['suspend', 'suspended', 'Suspend a tenant; returns once every edge refuses it'],
    ['resume', 'active', 'Resume a tenant; returns once every edge accepts it'],
  ] as const) {
    app.post(
      `/tenants/:tenant_id/${verb}`,
      {
        schema: {
          operationId: `${verb}Tenant`,
          tags: ['Tenants'],
          summary,
          params: tenantParams,
          problems: ['conflict'],
          response: { 200: tenantStatusSchema },
        },
      },
      async ({ params, principal }) =>
        setTenantStatus(deps, { tenantId: params.tenant_id, status, actor: actorOf(principal) }),
    )
  }
}

const toRate = (rate: { per_second: number; burst: number } | null): Rate | null =>
  rate === null ? null : { perSecond: rate.per_second, burst: rate.burst }
