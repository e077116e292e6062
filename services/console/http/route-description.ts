/** Describes a route of the admin API by the table of roles: its security and its problems. */
import type { ProblemCode } from '#shared/core/http/problem.ts'
import { findAccess } from '#shared/core/operators/roles.ts'
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
  if (access.who === 'public') return { problems, security: [] }
  problems.push('unauthorized')
  if (access.stepUp === true) problems.push('step_up_required')
  if (access.who === 'session') return { problems, security: [{ session: [] }] }
  return { problems: [...problems, 'forbidden'] }
}
