/** Secrets at rest: seal them again under the present MASTER_KEY. */
import { z } from 'zod'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { type RewrapDeps, rewrapSecrets } from './rewrap.ts'

const rewrappedSchema = z.object({
  rewrapped: z.number().int().describe('secrets that this call sealed under the present key'),
  already: z.number().int().describe('secrets that were sealed under it before'),
  tenants: z.number().int().describe('tenants that have a sealed secret'),
  remaining: z
    .number()
    .int()
    .describe(
      'tenants and operators still to be done: ask again; 0 when MASTER_KEY alone is enough',
    ),
  duration_ms: z.number().int(),
})

export function addSecretRoutes(app: ConsoleApp, deps: RewrapDeps): void {
  app.post(
    '/secrets/rewrap',
    {
      schema: {
        summary: 'Seal every stored secret again under MASTER_KEY',
        description:
          'For while MASTER_KEY_PREVIOUS is configured. Ends after some twenty seconds at most; ' +
          'asking again goes on from there.',
        response: { 200: rewrappedSchema },
      },
    },
    async ({ principal }) => rewrapSecrets(deps, { actor: actorOf(principal) }),
  )
}
