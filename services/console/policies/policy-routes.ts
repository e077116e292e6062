/** Routes of policies: show, list versions, set; and the presets. */
import { Problem } from '#shared/core/http/problem.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { toPolicyJsonSchema } from '#shared/core/policies/policy-check.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { createPolicyStore, type PolicyVersion } from '#shared/io/policies/policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { readCursor, toPage } from '../http/paging.ts'
import { tenantParams } from '../http/schemas.ts'
import { tenantNotFound } from '../tenants/directory.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { type PolicyDeps, readPolicy, setTenantPolicy } from './manage-policies.ts'
import {
  checkedPolicySchema,
  listVersionsQuery,
  policyBody,
  policyDocumentSchema,
  policyResultSchema,
  presetParams,
  presetSchema,
  presetsSchema,
  setPolicyQuery,
  shownPolicySchema,
  versionParams,
  versionSchema,
  versionsSchema,
} from './policy-schemas.ts'

type PolicyRouteDeps = PolicyDeps & { postgres: Queryable }

/** Adds the routes. */
export function addPolicyRoutes(app: ConsoleApp, deps: PolicyRouteDeps): void {
  addVersionRoutes(app, deps)
  addPresetRoutes(app)
  addCheckRoute(app, deps)
  app.put(
    '/tenants/:tenant_id/policy',
    {
      schema: {
        operationId: 'setPolicy',
        tags: ['Policies'],
        summary: 'Set the policy of a tenant; returns once every edge scores by it',
        description:
          'The body is the document itself, or `{"preset":"strict"}`. Setting the policy in force ' +
          'again adds no version.',
        params: tenantParams,
        querystring: setPolicyQuery,
        body: policyBody,
        problems: ['invalid_policy', 'policy_conflict', 'conflict'],
        response: { 200: policyResultSchema },
      },
    },
    async ({ params, query, body, principal }) =>
      setTenantPolicy(deps, {
        tenantId: params.tenant_id,
        document: toDocument(body),
        ifVersion: query.if_version,
        reason: query.reason ?? null,
        actor: actorOf(principal),
      }),
  )
}

function addCheckRoute(app: ConsoleApp, deps: PolicyRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/policy/check',
    {
      schema: {
        operationId: 'checkPolicy',
        tags: ['Policies'],
        summary: 'Check a policy as setting it would, without setting it',
        params: tenantParams,
        body: policyBody,
        response: { 200: checkedPolicySchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body }) => {
      await requireTenant(deps.postgres, tenantId)
      try {
        readPolicy(toDocument(body))
        const policyHash = toPolicyHash(toDocument(body) as Policy)
        return { valid: true, policy_hash: policyHash, errors: [] }
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'invalid_policy') throw error
        const errors = error.errors ?? []
        return { valid: false, policy_hash: null, errors }
      }
    },
  )
}

function addVersionRoutes(app: ConsoleApp, deps: PolicyRouteDeps): void {
  const store = createPolicyStore(deps.postgres)
  app.get(
    '/tenants/:tenant_id/policy',
    {
      schema: {
        operationId: 'findPolicy',
        conditional: true,
        tags: ['Policies'],
        summary: 'The policy in force',
        params: tenantParams,
        response: { 200: shownPolicySchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      const policy = await store.findInForce(tenantId)
      if (policy === null) throw tenantNotFound(tenantId)
      return toShown(tenantId, policy, policy.version)
    },
  )
  app.get(
    '/tenants/:tenant_id/policy/versions',
    {
      schema: {
        operationId: 'listPolicyVersions',
        tags: ['Policies'],
        summary: 'All versions of the policy, newest first',
        params: tenantParams,
        querystring: listVersionsQuery,
        response: { 200: versionsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { limit, cursor } }) => {
      const scope = { list: 'policy versions', tenantId, filters: null }
      const before = readCursor(scope, cursor, versionSchema)
      const inForce = await store.findInForce(tenantId)
      if (inForce === null) throw tenantNotFound(tenantId)
      const versions = await store.listVersions({ tenantId, limit: limit + 1, before })
      const rows = versions.map((one) => ({ ...one, in_force: one.version === inForce.version }))
      return toPage(scope, { rows, limit }, (row) => row.version)
    },
  )
  app.get(
    '/tenants/:tenant_id/policy/versions/:version',
    {
      schema: {
        operationId: 'findPolicyVersion',
        conditional: true,
        tags: ['Policies'],
        summary: 'One version of the policy; versions are never removed',
        params: versionParams,
        problems: ['policy_not_found'],
        response: { 200: shownPolicySchema },
      },
    },
    async ({ params: { tenant_id: tenantId, version } }) => {
      const inForce = await store.findInForce(tenantId)
      if (inForce === null) throw tenantNotFound(tenantId)
      const policy = await store.findVersion({ tenantId, version })
      if (policy !== null) return toShown(tenantId, policy, inForce.version)
      const detail = `Tenant ${tenantId} has no version ${version} of its policy.`
      throw new Problem('policy_not_found', detail)
    },
  )
}

/** Keeps the order of keys, which the hash covers. */
function toShown(
  tenantId: string,
  { text, ...version }: PolicyVersion & { text: string },
  inForce: number,
) {
  return {
    tenant_id: tenantId,
    ...version,
    in_force: version.version === inForce,
    document: JSON.parse(text) as unknown,
  }
}

type PresetName = keyof typeof presets

function addPresetRoutes(app: ConsoleApp): void {
  const names = Object.keys(presets) as PresetName[]
  app.get(
    '/policy-presets',
    {
      schema: {
        operationId: 'listPresets',
        tags: ['Policies'],
        summary: 'List the presets',
        response: { 200: presetsSchema },
      },
    },
    async () => ({
      data: names.map((name) => ({ name, policy_hash: toPolicyHash(presets[name]) })),
    }),
  )
  app.get(
    '/policy-presets/:name',
    {
      schema: {
        operationId: 'findPreset',
        conditional: true,
        tags: ['Policies'],
        summary: 'A preset in full',
        params: presetParams,
        problems: ['policy_not_found'],
        response: { 200: presetSchema },
      },
    },
    async ({ params: { name } }) => {
      if (!isPresetName(name)) {
        throw new Problem('policy_not_found', `There is no preset ${name}: ${names.join(', ')}.`)
      }
      return { name, policy_hash: toPolicyHash(presets[name]), document: presets[name] }
    },
  )
  app.get(
    '/policy.schema.json',
    {
      schema: {
        operationId: 'findPolicySchema',
        tags: ['Policies'],
        summary: 'The JSON Schema of a policy document',
        response: {
          200: {
            description: 'The JSON Schema.',
            content: { 'application/schema+json': { schema: policyDocumentSchema } },
          },
        },
      },
    },
    async (_, reply) => reply.type('application/schema+json').send(toPolicyJsonSchema()),
  )
}

const isPresetName = (name: string): name is PresetName => Object.hasOwn(presets, name)

/**
 * Resolves a request body to a policy document: the body itself, or the preset that it names.
 * @throws Problem invalid_policy when the preset does not exist
 */
export const toDocument = (body: unknown): unknown => (isPreset(body) ? findPreset(body) : body)

/** Whether a body names a preset. No policy document has this field. */
export const isPreset = (body: unknown): body is { preset: unknown } =>
  typeof body === 'object' && body !== null && Object.hasOwn(body, 'preset')

/**
 * Finds the preset that a body names.
 * @throws Problem invalid_policy when it does not exist, or the body has other fields
 */
export function findPreset({ preset, ...more }: { preset: unknown }) {
  if (typeof preset === 'string' && isPresetName(preset) && Object.keys(more).length === 0) {
    return presets[preset]
  }
  const errors = [
    ...Object.keys(more).map((key) => ({
      path: `$.${key}`,
      message: 'must not be set together with preset',
    })),
    ...(typeof preset === 'string' && isPresetName(preset)
      ? []
      : [{ path: '$.preset', message: `must be one of ${Object.keys(presets).join(', ')}` }]),
  ]
  throw new Problem('invalid_policy', 'There is no such preset. Nothing was changed.', { errors })
}
