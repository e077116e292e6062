/** Routes of drafts of policies: list, write, review, remove and publish. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { draftsMax } from '#shared/core/base/limits/policies.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toBacktestHash } from '#shared/core/policies/backtest-summary.ts'
import {
  findDraft,
  insertDraft,
  listDrafts,
  removeDraft,
  type StoredDraft,
  updateDraft,
} from '#shared/io/policies/draft-store.ts'
import { findBacktest } from '#shared/io/policies/policy-backtest-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../../http/admin-app.ts'
import { readCursor, toPage } from '../../http/paging.ts'
import { idSchema, tenantParams } from '../../http/schemas.ts'
import { requireTenant } from '../../tenants/manage-tenants.ts'
import { type PolicyDeps, setTenantPolicy } from '../manage-policies.ts'
import { policyResultSchema } from '../policy-schemas.ts'
import {
  changeDraftBody,
  draftParams,
  draftSchema,
  draftsQuery,
  draftsSchema,
  newDraftBody,
  publishDraftBody,
} from './draft-schemas.ts'

type DraftDeps = PolicyDeps & { postgres: Postgres }

const draftNotFound = () => new Problem('draft_not_found', 'The tenant has no such draft.')
const draftChanged = ({ revision, updated_by: by }: StoredDraft) =>
  new Problem(
    'draft_changed',
    `The draft is at revision ${revision}, by ${by}. Nothing was changed. Read it again.`,
  )

/** Adds the routes. */
export function addDraftRoutes(app: ConsoleApp, deps: DraftDeps): void {
  addReads(app, deps)
  addWrites(app, deps)
  addPublish(app, deps)
}

function addReads(app: ConsoleApp, { postgres }: DraftDeps): void {
  app.get(
    '/tenants/:tenant_id/drafts',
    {
      schema: {
        operationId: 'listDrafts',
        tags: ['Policies'],
        summary: 'The drafts of a tenant’s policy, newest first',
        params: tenantParams,
        querystring: draftsQuery,
        response: { 200: draftsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { limit, cursor } }) => {
      const scope = { list: 'policy drafts', tenantId, filters: null }
      const before = readCursor(scope, cursor, idSchema)
      const { policy_version: version } = await requireTenant(postgres, tenantId)
      const drafts = await listDrafts(postgres, { tenantId, limit: limit + 1, before })
      const rows = drafts.map((draft) => toListed(draft, version))
      return toPage(scope, { rows, limit }, (row) => row.draft_id)
    },
  )
  app.get(
    '/tenants/:tenant_id/drafts/:draft_id',
    {
      schema: {
        operationId: 'findDraft',
        conditional: true,
        tags: ['Policies'],
        summary: 'A draft with its text, and its latest backtest',
        params: draftParams,
        problems: ['draft_not_found'],
        response: { 200: draftSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, draft_id: draftId } }) =>
      toShown(postgres, await requireDraft(postgres, { tenantId, draftId })),
  )
}

function addWrites(app: ConsoleApp, { postgres }: DraftDeps): void {
  app.post(
    '/tenants/:tenant_id/drafts',
    {
      schema: {
        operationId: 'createDraft',
        tags: ['Policies'],
        summary: 'Begin a draft of a tenant’s policy',
        description: `Everybody who may edit policies of the tenant shares it. At most ${draftsMax}.`,
        params: tenantParams,
        body: newDraftBody,
        problems: ['conflict', 'policy_not_found'],
        response: { 201: draftSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }, reply) => {
      await requireTenant(postgres, tenantId)
      const { text, comment, base_version: baseVersion } = body
      const draftId = `drf_${randomUUID()}`
      const actor = actorOf(principal)
      const wanted = { draftId, tenantId, text, comment, baseVersion, actor, draftsMax }
      const draft = await insertDraft(postgres, wanted)
      if (draft === 'full') {
        throw new Problem('conflict', `There are ${draftsMax} drafts. Remove one first.`)
      }
      if (draft === 'no_version') throw noVersion(tenantId, baseVersion)
      return reply.code(201).send(await toShown(postgres, draft))
    },
  )
  app.put(
    '/tenants/:tenant_id/drafts/:draft_id',
    {
      schema: {
        operationId: 'changeDraft',
        tags: ['Policies'],
        summary: 'Change a draft; refused when its revision has risen',
        params: draftParams,
        body: changeDraftBody,
        problems: ['draft_not_found', 'draft_changed', 'policy_not_found'],
        response: { 200: draftSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, draft_id: draftId }, body, principal }) => {
      const { base_version: baseVersion, ...change } = body
      const actor = actorOf(principal)
      const draft = await updateDraft(postgres, {
        tenantId,
        draftId,
        baseVersion,
        actor,
        ...change,
      })
      if (draft !== null) return toShown(postgres, draft)
      const present = await requireDraft(postgres, { tenantId, draftId })
      throw present.revision === body.revision
        ? noVersion(tenantId, baseVersion)
        : draftChanged(present)
    },
  )
  app.delete(
    '/tenants/:tenant_id/drafts/:draft_id',
    {
      schema: {
        operationId: 'removeDraft',
        tags: ['Policies'],
        summary: 'Remove a draft',
        params: draftParams,
        problems: ['draft_not_found'],
        response: { 200: z.object({ tenant_id: z.string(), draft_id: z.string() }) },
      },
    },
    async ({ params: { tenant_id: tenantId, draft_id: draftId }, principal }) => {
      const actor = actorOf(principal)
      const removed = await postgres.transaction((tx) =>
        removeDraft(tx, { tenantId, draftId, actor }),
      )
      if (!removed) throw draftNotFound()
      return { tenant_id: tenantId, draft_id: draftId }
    },
  )
}

function addPublish(app: ConsoleApp, deps: DraftDeps): void {
  app.post(
    '/tenants/:tenant_id/drafts/:draft_id/publish',
    {
      schema: {
        operationId: 'publishDraft',
        tags: ['Policies'],
        summary: 'Publish a draft over the version that it began from, and remove it',
        description: 'Returns once every edge scores by it.',
        params: draftParams,
        body: publishDraftBody,
        problems: [
          ...['draft_not_found', 'draft_changed', 'invalid_policy'],
          ...['policy_conflict', 'conflict'],
        ] as const,
        response: { 200: policyResultSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, draft_id: draftId }, body, principal }) => {
      const draft = await requireDraft(deps.postgres, { tenantId, draftId })
      const { revision, reason } = body
      if (draft.revision !== revision) throw draftChanged(draft)
      const actor = actorOf(principal)
      return setTenantPolicy(deps, {
        tenantId,
        actor,
        reason,
        document: readDraft(draft),
        ifVersion: draft.base_version,
        onRecorded: async (tx) => {
          await removeDraft(tx, { tenantId, draftId, actor, revision })
        },
      })
    },
  )
}

const noVersion = (tenantId: string, version: number) =>
  new Problem(
    'policy_not_found',
    `Tenant ${tenantId} has no version ${version} of its policy. Nothing was changed.`,
  )

/** @throws Problem draft_not_found */
export async function requireDraft(
  postgres: Postgres,
  key: { tenantId: string; draftId: string },
): Promise<StoredDraft> {
  const draft = await findDraft(postgres, key)
  if (draft === null) throw draftNotFound()
  return draft
}

/** The document of a draft. @throws Problem invalid_policy when it is not JSON */
export function readDraft({ text }: Pick<StoredDraft, 'text'>): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const message = error instanceof Error ? error.message : 'is not JSON'
    const errors = [{ path: '$', message }]
    throw new Problem('invalid_policy', 'The draft is not JSON. Nothing was changed.', { errors })
  }
}

function tryRead(draft: StoredDraft): object | null {
  try {
    const document = JSON.parse(draft.text) as unknown
    return typeof document === 'object' ? document : null
  } catch {
    return null
  }
}

function toListed(draft: StoredDraft, inForceVersion: number) {
  const { text: _, ...view } = draft
  const name = (tryRead(draft) as { name?: unknown } | null)?.name
  return {
    ...view,
    name: typeof name === 'string' ? name : null,
    in_force_version: inForceVersion,
  }
}

async function toShown(postgres: Postgres, draft: StoredDraft) {
  const { tenant_id: tenantId, text } = draft
  const document = tryRead(draft)
  const { policy_version: version } = await requireTenant(postgres, tenantId)
  const policyHash = document && toBacktestHash(document)
  const backtest = policyHash && (await findBacktest(postgres, { tenantId, policyHash }))
  return { ...toListed(draft, version), text, backtest: backtest || null }
}
