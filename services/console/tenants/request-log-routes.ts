/** The route of the request log: the latest submissions of a tenant, as its edges answered them. */
import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { requestLogPauseMs, requestLogQueriesMax } from '#shared/core/base/limits/ingest.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { type RequestLogEntry, submissionKinds } from '#shared/core/telemetry/request-log.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { RequestLogs } from '#shared/io/telemetry/request-log-queries.ts'
import type { EdgeList } from '#shared/io/tenants/directory/list-edges.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { limitSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from './manage-tenants.ts'

export type RequestLogRouteDeps = {
  postgres: Queryable
  /** @throws when NATS is away */
  listEdges: () => Promise<EdgeList>
  /** @throws when NATS is away */
  queryRequestLogs: (query: {
    tenantId: string
    edgeIds: readonly string[]
  }) => Promise<RequestLogs>
}

const requestLogQuery = z.strictObject({
  outcome: z.enum(['all', 'accepted', 'refused']).default('all'),
  limit: limitSchema(500, 200),
})

const requestSchema = z.object({
  kind: z.enum(submissionKinds).describe('of registrations of installs, refused ones are listed'),
  at: z.string().describe("by the edge's clock"),
  request_id: z.string(),
  edge_id: z.string(),
  status: z.number().int(),
  code: z.string().describe("`accepted`, or the problem's code"),
  reason: z.string().nullable().describe('why it was refused'),
  detail: z.string().nullable().describe('the first faults of a body'),
  verified: z
    .boolean()
    .describe('false: the signature was not verified, so anyone may have sent and written it'),
  device_id: z.string().nullable().describe('of a refused one the first characters, escaped'),
  sdk_version: z.string().nullable(),
  event_id: z.string().nullable(),
  rasp_score: z.number().nullable(),
  rasp_action: z.string().nullable(),
})

const requestsSchema = z.object({
  tenant_id: z.string(),
  data: z.array(requestSchema).describe('newest first'),
  edges: z.array(
    z.object({
      edge_id: z.string(),
      since: z.string().describe('when the edge began to remember'),
      left_out: z
        .number()
        .int()
        .describe('refused submissions of any tenant that it did not note: too many at once'),
    }),
  ),
  silent_edges: z.array(z.string()).describe('edges that did not answer within a second'),
})
export type Requests = z.infer<typeof requestsSchema>

/** Adds the route. */
export function addRequestLogRoute(app: ConsoleApp, deps: RequestLogRouteDeps): void {
  const query = createSharedQueries(deps)
  app.get(
    '/tenants/:tenant_id/requests',
    {
      schema: {
        operationId: 'listSubmissions',
        tags: ['Submissions'],
        summary: 'List the latest submissions of a tenant with their answers, newest first',
        description:
          'Edges keep them in memory since their start: for each tenant the last 50 accepted ones, ' +
          'the last 50 refused ones, and the last 50 that name the tenant without a valid ' +
          'signature; of registrations of installs, those that were refused. Calls for one tenant within half a second share one query of the edges.',
        params: tenantParams,
        querystring: requestLogQuery,
        response: { 200: requestsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { outcome, limit } }) => {
      await requireTenant(deps.postgres, tenantId)
      const { answers, silent } = await query(tenantId)
      const entries = answers.flatMap(({ edge_id: edgeId, entries }) =>
        entries
          .filter(
            ({ status }) => outcome === 'all' || (status === 200) === (outcome === 'accepted'),
          )
          .map((entry) => ({ edgeId, entry })),
      )
      entries.sort((a, b) => b.entry.at_ms - a.entry.at_ms)
      return {
        tenant_id: tenantId,
        data: entries.slice(0, limit).map(({ edgeId, entry }) => toRequest(edgeId, entry)),
        edges: answers.map(({ edge_id, since_ms, left_out }) => ({
          edge_id,
          since: new Date(since_ms).toISOString(),
          left_out,
        })),
        silent_edges: silent,
      }
    },
  )
}

function toRequest(edgeId: string, { at_ms: atMs, ...entry }: RequestLogEntry) {
  return { ...entry, edge_id: edgeId, at: new Date(atMs).toISOString() }
}

/** A query of a tenant, which keeps its place until the next one of the tenant may begin. */
type Slot = {
  answer: Promise<RequestLogs>
  /** The place is free again; never rejects. */
  freed: Promise<void>
  answered: boolean
  next: Promise<RequestLogs> | null
}

/**
 * Calls for one tenant at a time share one query of the edges, and the next one begins
 * `requestLogPauseMs` after it at the earliest: its callers wait. Tenants at a time are bounded.
 */
function createSharedQueries(deps: RequestLogRouteDeps) {
  const slots = new Map<string, Slot>()
  const begin = (tenantId: string): Promise<RequestLogs> => {
    if (slots.size >= requestLogQueriesMax) {
      const detail = 'The request logs of many tenants are read at this moment.'
      throw new Problem('rate_limited', detail, { retryAfterSeconds: 1 })
    }
    const answer = queryEdges(deps, tenantId)
    const slot: Slot = { answer, freed: freeLater(answer), answered: false, next: null }
    slots.set(tenantId, slot)
    async function freeLater(ended: Promise<unknown>): Promise<void> {
      const paused = setTimeout(requestLogPauseMs, undefined, { ref: false })
      await ended.catch(() => undefined)
      slot.answered = true
      await paused
      slots.delete(tenantId)
    }
    return answer
  }
  return (tenantId: string): Promise<RequestLogs> => {
    const slot = slots.get(tenantId)
    if (slot === undefined) return begin(tenantId)
    if (!slot.answered) return slot.answer
    slot.next ??= slot.freed.then(() => begin(tenantId))
    return slot.next
  }
}

/** @throws Problem unavailable when NATS is away */
async function queryEdges(
  { listEdges, queryRequestLogs }: RequestLogRouteDeps,
  tenantId: string,
): Promise<RequestLogs> {
  try {
    const { edges } = await listEdges()
    const edgeIds = edges.map(({ edge_id: edgeId }) => edgeId)
    return await queryRequestLogs({ tenantId, edgeIds })
  } catch (error) {
    throw unavailable('The edges cannot be queried: NATS does not answer.', error)
  }
}
