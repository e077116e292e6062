/**
 * Authenticates API calls by a tenant's public API key as a bearer token. The key is looked up on
 * every call, so a rotated key or a suspended tenant is rejected at once. A rejection tells what is
 * wrong with the request itself; no caller learns whether a key or a tenant exists.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { keyCacheMax } from '#shared/core/base/limits/rest-api.ts'
import { invalidKey, Problem } from '#shared/core/http/problem.ts'
import type { ApiKeyScope } from '#shared/core/tenants/api-key-scopes.ts'
import { parseApiKey } from '#shared/core/tenants/credentials.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { KeyHolder, TenantStore } from '#shared/io/tenants/tenant-store.ts'
import type { FindKeyHolder } from './find-key-holder.ts'
import type { RateLimits } from './rate-limits.ts'

/** The tenant of an authenticated call. A handler may read only the data of `tenantId`. */
export type Caller = {
  tenantId: string
  /** The name of a named key; null for the key that came with the tenant. */
  keyName: string | null
  scopes: readonly ApiKeyScope[]
  /** Of the key. A change is made only while the key is active. */
  keyHash: Buffer
  /** Charges the tenant's rate for a response with this many rows. */
  chargeRows: (rows: number) => void
  /** Charges further calls, of a call that did as much as they. */
  chargeCalls: (calls: number) => void
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `createAuthenticate`. */
    caller: Caller
  }
  interface FastifyContextConfig {
    /** Calls of the tenant's rate that a call of this route counts as; 1 when left out. */
    calls?: number
  }
}

type AuthenticateDeps = Pick<TenantStore, 'recordApiKeyUse'> & {
  findKeyHolder: FindKeyHolder
  rateLimits: RateLimits
  /** The wall clock. */
  nowMs: () => number
  log: Log
  metrics: Metrics
}

const keyHeaderHint = 'This call has its key in X-API-Key.'
const schemeHint = 'This call has Authorization in another form than Bearer and one key.'
const wholeKeyHint = 'The key of this call is not whole: its checksum does not hold.'

type Rejection = 'missing' | 'malformed' | 'unknown' | 'suspended'

/**
 * Creates an `onRequest` hook that sets `request.caller` and takes the call's tokens of the
 * tenant's rate.
 * @throws Problem unauthorized, rate_limited, unavailable
 */
export function createAuthenticate(
  deps: AuthenticateDeps,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const rejections = deps.metrics.counter<'reason'>(
    'di_api_auth_refusals_total',
    'Calls rejected without a valid API key, by reason',
    ['reason'],
  )
  const reject = (reason: Rejection, hint?: string): never => {
    rejections.inc({ reason })
    throw invalidKey(hint)
  }
  const recordUse = createUseRecorder(deps)

  const findHolder = async ({
    headers,
    ip: address,
  }: FastifyRequest): Promise<KeyHolder & { keyHash: Buffer }> => {
    const { authorization } = headers
    if (authorization === undefined) {
      return reject('missing', headers['x-api-key'] === undefined ? undefined : keyHeaderHint)
    }
    const text = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
    if (text === undefined) return reject('malformed', schemeHint)
    const key = parseApiKey(text)
    if (key === null) return reject('malformed', wholeKeyHint)
    const holder = await deps.findKeyHolder(key.hash, address)
    if (holder === null) return reject('unknown')
    if (holder.status !== 'active') return reject('suspended')
    recordUse(key.hash, holder.lastUsedMs)
    return { ...holder, keyHash: key.hash }
  }

  return async (request, reply) => {
    const holder = await findHolder(request)
    const { tenantId, restRate, keyName, scopes, keyHash } = holder
    proveConnection(request.raw.socket)
    deps.rateLimits.take(tenantId, restRate, reply, request.routeOptions.config.calls ?? 1)
    const chargeRows = (rows: number) => deps.rateLimits.chargeRows(tenantId, restRate, rows, reply)
    const chargeCalls = (calls: number) =>
      deps.rateLimits.chargeCalls(tenantId, restRate, calls, reply)
    request.caller = { tenantId, keyName, scopes, keyHash, chargeRows, chargeCalls }
  }
}

/** How old the recorded last use of a key may be. */
const useRecordedEveryMs = 60_000

/** Records that a key is in use, in the background: a failure does not affect the call. */
function createUseRecorder({ recordApiKeyUse, nowMs, log }: AuthenticateDeps) {
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

/** @throws Problem scope_missing when the caller's key does not have the scope */
export function requireScope({ scopes }: Caller, scope: ApiKeyScope): void {
  if (scopes.includes(scope)) return
  throw new Problem(
    'scope_missing',
    `This call needs an API key with the scope ${scope}. An operator of the service can make one.`,
  )
}
