/** `GET /v1/di/signals`: the signal catalog with the weights of the tenant's current policy. */
import { Problem } from '#shared/core/http/problem.ts'
import {
  signalListSchema,
  signalsQuerySchema,
  toSignalList,
} from '#shared/core/signals/signal-list.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { CurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { signalListExample } from '../openapi/examples.ts'

export type SignalRouteDeps = CurrentPolicyStore & {
  /** The wall clock. */
  nowMs: () => number
}

/** Adds the route. */
export function addSignalRoutes(app: ZodApp, { findCurrentPolicy, nowMs }: SignalRouteDeps): void {
  app.get(
    '/v1/di/signals',
    {
      schema: {
        operationId: 'listSignals',
        conditional: true,
        tags: ['Signals'],
        summary: 'The signal catalog with the tenant’s weights',
        description:
          'Every known signal: its type, its meaning, and its weight under the tenant’s current policy. Other signals may be sent as well: they are stored and have no weight. The example is an excerpt.',
        querystring: signalsQuerySchema,
        response: { 200: signalListSchema },
        example: signalListExample,
      },
    },
    async ({ caller: { tenantId } }) => {
      const current = await findCurrentPolicy(tenantId)
      // The tenant was removed after its key was checked.
      if (current === null) throw new Problem('tenant_not_found', 'The tenant no longer exists.')
      return toSignalList(current, nowMs())
    },
  )
}
