/**
 * The check before every route of the admin API: who calls, by a session or by the admin token;
 * whether the table of roles lets them; whether the tenant in the path is theirs; and that an
 * unsafe request with a cookie comes from our own pages.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { publicBodyBytesMax } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { hashToken, tokenPattern } from '#shared/core/operators/operator-credentials.ts'
import {
  type EndpointAccess,
  findAccess,
  findAccessFault,
  seesTenant,
} from '#shared/core/operators/roles.ts'
import { mustEnrol } from '#shared/core/operators/second-factor-rule.ts'
import { isLastUseDue, isSessionValid } from '#shared/core/operators/session-times.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import { createGuessScreen } from '#shared/io/http/guess-screen.ts'
import {
  findExistingTokens,
  findSessionByToken,
  noteSessionUse,
} from '#shared/io/operators/session-store.ts'
import type { OperatorPrincipal } from '../http/admin-app.ts'
import type { TokenCheck } from '../http/check-token.ts'
import { tenantNotFound } from '../tenants/directory.ts'
import { tooMany } from './attempt-limits.ts'
import type { OperatorParts } from './operator-deps.ts'
import { mayEnrol } from './sign-in.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Adds the check to a scope, before its routes are added.
 * @param prefix what the paths of the scope begin with
 */
export function addAuthentication(
  scope: FastifyInstance,
  prefix: string,
  parts: OperatorParts & { token: TokenCheck },
): void {
  const { origin, wallMs, token: adminToken } = parts
  const findPrincipal = createPrincipalLookup(parts)
  const accessOf = (method: string, url: string) => findAccess(method, url.slice(prefix.length))

  scope.decorateRequest('principal', null)
  scope.addHook('onRoute', (route) => {
    const { method, url } = route
    const entries = [method].flat().map((one) => [one, accessOf(one, url)] as const)
    if (entries.some(([, access]) => access?.who === 'public')) {
      route.bodyLimit = publicBodyBytesMax
    }
    const missing = entries.flatMap(([one, access]) => (access === undefined ? [one] : []))
    if (missing.length === 0) return
    throw new Error(`shared/core/operators/roles.ts has no entry for ${missing.join()} ${url}`)
  })
  scope.addHook('onRequest', async (request) => {
    const { method, headers } = request
    const access = accessOf(method, request.routeOptions.url ?? '')!
    const isUnsafe = !safeMethods.has(method)
    if (access.who === 'public') {
      if (isUnsafe) origin.requireSameOrigin(request)
      return
    }
    if (headers.authorization !== undefined) {
      await adminToken.check(request)
      if (access.who === 'session') {
        throw new Problem('unauthorized', 'This needs the session of an operator.')
      }
      request.principal = { kind: 'token' }
      return
    }
    const principal = await findPrincipal(origin.readCookie(request), request.ip)
    if (principal === null) {
      const detail = 'The admin API needs a session, or the admin token as a bearer token.'
      throw new Problem('unauthorized', detail)
    }
    if (isUnsafe) origin.requireSameOrigin(request)
    const isEnrolling = access.who === 'session' && access.orFirst === true
    const proven = isEnrolling && mayEnrol(parts, principal)
    requireAccess(access, principal, request, { nowMs: wallMs(), proven })
    request.principal = principal
    proveConnection(request.raw.socket)
  })
}

/** @throws Problem totp_setup_required, forbidden, tenant_not_found, step_up_required */
function requireAccess(
  access: EndpointAccess,
  { operator, session, mustEnrol: isEnrolFirst }: OperatorPrincipal,
  { params }: FastifyRequest,
  { nowMs, proven }: { nowMs: number; proven: boolean },
): void {
  const { role, tenants } = operator
  const { stepUpUntilMs } = session
  const caller = { role, tenants, stepUpUntilMs, mustEnrol: isEnrolFirst }
  const fault = findAccessFault(access, caller, nowMs)
  if (fault === 'enrol') {
    const detail = 'A second factor is required: set up an authenticator app first.'
    throw new Problem('totp_setup_required', detail)
  }
  if (fault === 'role') {
    throw new Problem('forbidden', `This needs the role ${access.who}; yours is ${role}.`)
  }
  if (fault === 'all_tenants') {
    throw new Problem('forbidden', 'This needs an administrator of all tenants.')
  }
  const { tenant_id: tenantId } = params as { tenant_id?: string }
  if (tenantId !== undefined && !seesTenant(tenants, tenantId)) throw tenantNotFound(tenantId)
  if (fault === 'step_up' && !proven) {
    throw new Problem('step_up_required', 'Enter your password or a code again to do this.')
  }
}

/** Finds the operator and the session of a cookie's token; null when there is none in force. */
function createPrincipalLookup({
  postgres,
  wallMs,
  knownTokens,
}: OperatorParts): (token: string | null, address: string) => Promise<OperatorPrincipal | null> {
  const screen = createGuessScreen((hashes) => findExistingTokens(postgres, hashes))
  const lookUp = async (tokenHash: Buffer, address: string) => {
    if (!knownTokens.has(tokenHash)) {
      const exists = await screen.exists(tokenHash, address)
      if (exists === null) throw tooMany(1)
      if (!exists) return null
      knownTokens.add(tokenHash)
    }
    return findSessionByToken(postgres, tokenHash)
  }
  return async (token, address) => {
    if (token === null || !tokenPattern.test(token)) return null
    const tokenHash = hashToken(token)
    const hit = await lookUp(tokenHash, address)
    if (hit === null || hit.operator.disabled) return null
    const { session, operator, requiredSinceMs } = hit
    const atMs = wallMs()
    if (!isSessionValid(session, atMs)) return null
    const isEnrolFirst = mustEnrol(operator, session, requiredSinceMs)
    const found = { kind: 'operator', operator, tokenHash, mustEnrol: isEnrolFirst } as const
    if (!isLastUseDue(session, atMs)) return { ...found, session }
    await noteSessionUse(postgres, session.sessionId, atMs)
    return { ...found, session: { ...session, lastUsedAtMs: atMs } }
  }
}
