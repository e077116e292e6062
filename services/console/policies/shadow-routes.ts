/** Routes of shadow policies: set, show, switch off, and compare with the active policy. */
import { toIso } from '#shared/core/base/instants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { sumCompared } from '#shared/core/policies/shadow-comparison.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type {
  ShadowComparison,
  ShadowComparisonStore,
} from '#shared/io/policies/shadow-comparison-store.ts'
import {
  findLastShadowDocument,
  findShadowPolicy,
  type ShadowPolicy,
} from '#shared/io/policies/shadow-policy-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { type ManageDeps, requireTenant } from '../tenants/manage-tenants.ts'
import { setShadowPolicy } from './manage-shadow.ts'
import { findPreset, isPreset } from './policy-routes.ts'
import { policyBody } from './policy-schemas.ts'
import {
  comparisonQuery,
  comparisonSchema,
  type ShadowComparisonBody,
  shadowResultSchema,
  shownShadowSchema,
} from './shadow-schemas.ts'

export type ShadowRouteDeps = Pick<ManageDeps, 'leases' | 'postgres'> & {
  compareShadow: ShadowComparisonStore['compareShadow']
}

/** Adds the routes. */
export function addShadowRoutes(app: ConsoleApp, deps: ShadowRouteDeps): void {
  addChangeRoutes(app, deps)
  app.get(
    '/tenants/:tenant_id/policy/shadow',
    {
      schema: {
        operationId: 'findShadowPolicy',
        conditional: true,
        tags: ['Policies'],
        summary: 'The shadow policy',
        params: tenantParams,
        problems: ['policy_not_found'],
        response: { 200: shownShadowSchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(deps.postgres, tenantId)
      const shadow = await findShadowPolicy(deps.postgres, { tenantId })
      if (shadow === null || shadow.text === null) throw noShadow(tenantId)
      const { text, ...version } = shadow
      return { tenant_id: tenantId, ...version, document: JSON.parse(text) as unknown }
    },
  )
  app.get(
    '/tenants/:tenant_id/policy/shadow/comparison',
    {
      schema: {
        operationId: 'compareShadowPolicy',
        tags: ['Policies'],
        summary: 'Compare the decisions of the shadow policy with those of the active policy',
        params: tenantParams,
        querystring: comparisonQuery,
        problems: ['policy_not_found'],
        response: { 200: comparisonSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since, version } }) => {
      await requireTenant(deps.postgres, tenantId)
      const shadow =
        version === undefined
          ? await findLastShadowDocument(deps.postgres, tenantId)
          : await findShadowPolicy(deps.postgres, { tenantId, version })
      if (shadow === null || shadow.policy_hash === null) throw noShadow(tenantId)
      const sinceMs = since ?? null
      const { policy_hash: policyHash } = shadow
      const compared = await deps
        .compareShadow({ tenantId, policyHash, sinceMs })
        .catch(rejectUnavailable('The decisions cannot be read at the moment.'))
      return toComparison(
        { tenantId, shadow: { ...shadow, policy_hash: policyHash }, sinceMs },
        compared,
      )
    },
  )
}

function addChangeRoutes(app: ConsoleApp, deps: ShadowRouteDeps): void {
  app.put(
    '/tenants/:tenant_id/policy/shadow',
    {
      schema: {
        operationId: 'setShadowPolicy',
        tags: ['Policies'],
        summary: 'Set a shadow policy: it decides beside the active policy and raises no alerts',
        description:
          'The body is the document itself, or `{"preset":"strict"}`. It decides events received ' +
          'from `effective_at` on. Setting the same policy again adds no version.',
        params: tenantParams,
        body: policyBody,
        problems: ['invalid_policy', 'conflict'],
        response: { 200: shadowResultSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) => {
      const document = isPreset(body) ? findPreset(body) : body
      // JSON's null is a document that is not valid; it does not switch the shadow off.
      const wanted = { tenantId, document: document ?? [], actor: actorOf(principal) }
      return (await setShadowPolicy(deps, wanted))!
    },
  )
  app.delete(
    '/tenants/:tenant_id/policy/shadow',
    {
      schema: {
        operationId: 'removeShadowPolicy',
        tags: ['Policies'],
        summary: 'Switch the shadow policy off; its decisions stay',
        params: tenantParams,
        problems: ['policy_not_found', 'conflict'],
        response: { 200: shadowResultSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, principal }) => {
      const wanted = { tenantId, document: null, actor: actorOf(principal) }
      const answer = await setShadowPolicy(deps, wanted)
      if (answer === null) throw noShadow(tenantId)
      return answer
    },
  )
}

const noShadow = (tenantId: string): Problem =>
  new Problem('policy_not_found', `Tenant ${tenantId} has no shadow policy.`)

type ComparedShadow = {
  tenantId: string
  shadow: Pick<ShadowPolicy, 'version' | 'name'> & { policy_hash: string }
  sinceMs: number | null
}

function toComparison(
  { tenantId, shadow, sinceMs }: ComparedShadow,
  { versions, firstMs, lastMs, sessions, moved, dispositions, outcomes }: ShadowComparison,
): ShadowComparisonBody {
  return {
    tenant_id: tenantId,
    shadow: {
      version: shadow.version,
      versions,
      policy_hash: shadow.policy_hash,
      name: shadow.name,
    },
    since: toIsoOrNull(sinceMs),
    first_event_at: toIsoOrNull(firstMs),
    last_event_at: toIsoOrNull(lastMs),
    ...sumCompared(sessions),
    by_disposition: dispositions,
    outcomes,
    moved_most: moved.map((one) => ({
      device_id: one.deviceId,
      session_id: one.sessionId,
      active_score: one.activeScore,
      shadow_score: one.shadowScore,
    })),
  }
}

const toIsoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
