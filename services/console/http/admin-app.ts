/**
 * What the routes of the admin API share: the type of the server, and who calls, as the check
 * before every route has found out.
 */
import type { TenantScope } from '#shared/core/operators/roles.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { Operator } from '#shared/io/operators/operator-store.ts'
import type { Session } from '#shared/io/operators/session-store.ts'

export type ConsoleApp = ZodApp

/**
 * Who calls: a person with a session, or the bearer of the admin token. `mustEnrol`: the session may
 * do nothing but set up a second factor.
 */
export type Principal =
  | { kind: 'token' }
  | {
      kind: 'operator'
      operator: Operator
      session: Session
      tokenHash: Buffer
      mustEnrol: boolean
    }

export type OperatorPrincipal = Extract<Principal, { kind: 'operator' }>

declare module 'fastify' {
  interface FastifyRequest {
    /** Null only on endpoints that anyone may call. */
    principal: Principal | null
  }
}

/** The actor that the audit log names: an operator's email, `admin` for the admin token. */
export function actorOf(principal: Principal | null): string {
  if (principal === null) throw new Error('the caller of this endpoint was not checked')
  return principal.kind === 'operator' ? principal.operator.email : 'admin'
}

/** The tenants that the caller may see. */
export function tenantsOf(principal: Principal | null): TenantScope {
  if (principal === null) throw new Error('the caller of this endpoint was not checked')
  return principal.kind === 'operator' ? principal.operator.tenants : 'all'
}

/** The signed-in operator; only on endpoints that need a session. */
export function operatorOf(principal: Principal | null): OperatorPrincipal {
  if (principal?.kind !== 'operator') throw new Error('this endpoint was called without a session')
  return principal
}
