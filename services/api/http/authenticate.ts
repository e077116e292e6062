/**
 * Authenticates API calls by a tenant's public API key as a bearer token. The key is looked up on
 * every call, so a rotated key or a suspended tenant is rejected at once. All rejections are alike:
 * no caller learns whether a key or a tenant exists.
 */
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { LRUCache } from 'lru-cache'
import { keyCacheMax } from '#shared/core/base/limits/rest-api.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { parseApiKey } from '#shared/core/tenants/credentials.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { KeyHolder, TenantStore } from '#shared/io/tenants/tenant-store.ts'
import type { RateLimits } from './rate-limits.ts'

/** An authenticated call. It may read only the data of `tenantId`. */
export type Call = {
  tenantId: string
  request: FastifyRequest
  reply: FastifyReply
  /** Charges the tenant's rate for a response with this many rows. */
  chargeRows: (rows: number) => void
}

/** Runs the handler only for authenticated calls within the tenant's rate. It returns the body. */
export type Guard = (handler: (call: Call) => Promise<object>) => RouteHandlerMethod

export type GuardDeps = Pick<TenantStore, 'findTenantByApiKey' | 'recordApiKeyUse'> & {
  rateLimits: RateLimits
  /** The wall clock. */
  nowMs: () => number
  log: Log
  metrics: Metrics
}

type Refusal = 'missing' | 'malformed' | 'unknown' | 'suspended'

export function createGuard(deps: GuardDeps): Guard {
  const refusals = deps.metrics.counter<'reason'>(
    'di_api_auth_refusals_total',
    'Calls rejected without a valid API key, by reason',
    ['reason'],
  )
  const refuse = (reason: Refusal): never => {
    refusals.inc({ reason })
    throw new Problem('unauthorized', 'This call needs a valid API key as a bearer token.')
  }
  const recordUse = createUseRecorder(deps)

  const authenticate = async (authorization: string | undefined): Promise<KeyHolder> => {
    if (authorization === undefined) return refuse('missing')
    const text = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
    const key = text === undefined ? null : parseApiKey(text)
    if (key === null) return refuse('malformed')
    const holder = await deps.findTenantByApiKey(key.hash)
    if (holder === null) return refuse('unknown')
    if (holder.status !== 'active') return refuse('suspended')
    recordUse(key.hash, holder.lastUsedMs)
    return holder
  }

  return (handler) => async (request, reply) => {
    const { tenantId, restRate } = await authenticate(request.headers.authorization)
    proveConnection(request.raw.socket)
    deps.rateLimits.take(tenantId, restRate, reply)
    const chargeRows = (rows: number) => deps.rateLimits.chargeRows(tenantId, restRate, rows, reply)
    return handler({ tenantId, request, reply, chargeRows })
  }
}

/** How old the recorded last use of a key may be. */
const useRecordedEveryMs = 60_000

/** Records that a key is in use, in the background: a failure does not affect the call. */
function createUseRecorder({ recordApiKeyUse, nowMs, log }: GuardDeps) {
  const triedAtMs = new LRUCache<string, number>({ max: keyCacheMax })
  return (keyHash: Buffer, lastUsedMs: number | null): void => {
    const now = nowMs()
    const isFresh = (atMs: number | null | undefined) =>
      typeof atMs === 'number' && now - atMs < useRecordedEveryMs
    if (isFresh(lastUsedMs)) return
    const id = keyHash.toString('base64')
    // The row may be older than an update in flight.
    if (isFresh(triedAtMs.get(id))) return
    triedAtMs.set(id, now)
    recordApiKeyUse(keyHash, now).catch((error: unknown) => {
      log.warn({ err: error }, 'the use of an API key could not be recorded')
    })
  }
}
