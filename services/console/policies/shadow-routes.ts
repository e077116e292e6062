/** Shadow policies: setting one, looking at it, and what it would have decided. */
import { parseInstant } from '#shared/core/base/instants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { sumCompared } from '#shared/core/policies/shadow-comparison.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
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
  shadowAnswerSchema,
  shownShadowSchema,
} from './shadow-schemas.ts'

export type ShadowRouteDeps = Pick<ManageDeps, 'locks' | 'postgres'> & {
  compareShadow: ShadowComparisonStore['compareShadow']
}

export function addShadowRoutes(app: ConsoleApp, deps: ShadowRouteDeps): void {
  addChangeRoutes(app, deps)
  app.get(
    '/tenants/:tenant_id/policy/shadow',
    {
      schema: {
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
        summary: 'What the shadow policy would have decided, against what was decided',
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
      const sinceMs = since === undefined ? null : parseInstant(since)
      const { policy_hash: policyHash } = shadow
      const compared = await deps
        .compareShadow({ tenantId, policyHash, sinceMs })
        .catch((error: unknown) => {
          throw unavailable('The decisions cannot be read at the moment.', toLoggable(error))
        })
      return toBody({ tenantId, shadow: { ...shadow, policy_hash: policyHash }, sinceMs }, compared)
    },
  )
}

function addChangeRoutes(app: ConsoleApp, deps: ShadowRouteDeps): void {
  app.put(
    '/tenants/:tenant_id/policy/shadow',
    {
      schema: {
        summary: 'Set a policy beside the active one: it decides and alerts nobody',
        description:
          'The body is the document itself, or `{"preset":"strict"}`. It decides events received ' +
          'from `effective_at` on. The shadow that is set already adds no version.',
        params: tenantParams,
        body: policyBody,
        problems: ['invalid_policy', 'conflict'],
        response: { 200: shadowAnswerSchema },
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
        summary: 'Switch the shadow policy off; what it decided stays',
        params: tenantParams,
        problems: ['policy_not_found', 'conflict'],
        response: { 200: shadowAnswerSchema },
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

type Asked = {
  tenantId: string
  shadow: Pick<ShadowPolicy, 'version' | 'name'> & { policy_hash: string }
  sinceMs: number | null
}

function toBody(
  { tenantId, shadow, sinceMs }: Asked,
  { versions, firstMs, lastMs, sessions, moved, dispositions }: ShadowComparison,
): ShadowComparisonBody {
  return {
    tenant_id: tenantId,
    shadow: {
      version: shadow.version,
      versions,
      policy_hash: shadow.policy_hash,
      name: shadow.name,
    },
    since: toIso(sinceMs),
    first_event_at: toIso(firstMs),
    last_event_at: toIso(lastMs),
    ...sumCompared(sessions),
    by_disposition: dispositions,
    moved_most: moved.map((one) => ({
      device_id: one.deviceId,
      session_id: one.sessionId,
      active_score: one.activeScore,
      shadow_score: one.shadowScore,
    })),
  }
}

const toIso = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString()
