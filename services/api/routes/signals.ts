/**
 * `GET /v1/di/signals`: the signal catalog with what each signal weighs for the calling tenant, by
 * the policy that it has at this moment.
 */
import type { FastifyInstance } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'
import { readQuery } from '#shared/core/http/query-string.ts'
import { signalsQuerySchema, toSignalList } from '#shared/core/signals/signal-list.ts'
import type { CurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import type { Guard } from '../http/authenticate.ts'

export function addSignalRoutes(
  app: FastifyInstance,
  guard: Guard,
  { findCurrentPolicy, nowMs }: CurrentPolicyStore & { nowMs: () => number },
): void {
  app.get(
    '/v1/di/signals',
    guard(async ({ tenantId, request }) => {
      readQuery(request.url, signalsQuerySchema)
      const current = await findCurrentPolicy(tenantId)
      // The tenant has just shown its key: it was removed in between.
      if (current === null) throw new Problem('tenant_not_found', 'The tenant is gone.')
      return toSignalList(current, nowMs())
    }),
  )
}
