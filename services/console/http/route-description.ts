/** Describes a route of the admin API by the table of roles: its security and its problems. */
import type { ProblemCode } from '#shared/core/http/problem.ts'
import { type EndpointAccess, findAccess } from '#shared/core/operators/roles.ts'
import type { RouteDescription } from '#shared/io/http/openapi.ts'

/**
 * Finds what every caller of a route must pass before the route itself runs.
 * @param path with parameters as `:name`, below `/admin/v1`
 * @throws Error when the table of roles has no entry for the route
 */
export function describeRoute(method: string, path: string): RouteDescription {
  const access = findAccess(method, path)
  if (access === undefined) throw new Error(`the table of roles has no entry for ${method} ${path}`)
  const problems: ProblemCode[] = ['rate_limited', 'unavailable']
  if (method !== 'GET') problems.push('origin_refused')
  // The audit log of a tenant outlives the tenant.
  if (path.includes(':tenant_id') && !path.endsWith('/audit')) problems.push('tenant_not_found')
  const callers = describeCallers(access)
  if (access.who === 'public') return { problems, callers, security: [] }
  problems.push('unauthorized')
  if (access.stepUp === true) problems.push('step_up_required')
  if (access.who === 'session') return { problems, callers, security: [{ session: [] }] }
  if (access.guarded !== undefined) problems.push('approval_required')
  return { problems: [...problems, 'forbidden'], callers }
}

/** Who may call, as a sentence or two. */
function describeCallers(access: EndpointAccess): string {
  if (access.who === 'public') return 'Anyone may call it.'
  const { who } = access
  const allTenants = 'allTenants' in access && access.allTenants === true
  const caller =
    who === 'session'
      ? 'Every signed-in operator may call it, for their own account.'
      : `Needs the role ${who}${allTenants ? ' for all tenants' : ''}, or the admin token.`
  return access.stepUp === true
    ? `${caller} An operator enters the password or a code again first.`
    : caller
}
