/** Routes of tenants: create, list, show, set rates, suspend, resume. */
import { z } from 'zod'
import type { Rate } from '#shared/core/http/rate-limit.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { pageQuery, pageSchema, readCursor, toPage } from '../http/paging.ts'
import {
  createdTenantSchema,
  createTenantBody,
  ratesBody,
  tenantIdSchema,
  tenantParams,
  tenantSchema,
  tenantStatusSchema,
} from '../http/schemas.ts'
import { tenantNotFound } from './directory.ts'
import { createTenant, type ManageDeps, setTenantRates, setTenantStatus } from './manage-tenants.ts'

const listed = { list: 'tenants', tenantId: '', filters: null }

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
        querystring: z.strictObject(pageQuery(1_000, 1_000)),
        response: { 200: pageSchema(tenantSchema).extend({ total: z.int() }) },
      },
    },
    async ({ query: { limit, cursor }, principal }) => {
      const scope = tenantsOf(principal)
      const after = readCursor(listed, cursor, tenantIdSchema)
      const [rows, total] = await Promise.all([
        store.listTenants({ limit: limit + 1, after, scope }),
        store.countTenants(scope),
      ])
      return { ...toPage(listed, { rows, limit }, (row) => row.tenant_id), total }
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
