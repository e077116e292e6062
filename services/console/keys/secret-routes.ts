/** The route that seals stored secrets again under the current MASTER_KEY. */
import { z } from 'zod'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { type RewrapDeps, rewrapSecrets } from './rewrap.ts'

const rewrappedSchema = z.object({
  rewrapped: z.number().int().describe('secrets that this call sealed under the current key'),
  already: z.number().int().describe('secrets that had the current key before'),
  tenants: z.number().int().describe('tenants with a sealed secret'),
  remaining: z
    .number()
    .int()
    .describe(
      'tenants and operators left: repeat the call; 0 when MASTER_KEY_PREVIOUS is not needed',
    ),
  duration_ms: z.number().int(),
})

/** Adds the route. */
export function addSecretRoutes(app: ConsoleApp, deps: RewrapDeps): void {
  app.post(
    '/secrets/rewrap',
    {
      schema: {
        operationId: 'rewrapSecrets',
        tags: ['Credentials'],
        summary: 'Seal every stored secret again under MASTER_KEY',
        description:
          'Use it while MASTER_KEY_PREVIOUS is set, and once after an upgrade from a release where ' +
          'edges and delivery had MASTER_KEY. A call takes at most about twenty seconds; the next ' +
          'call continues.',
        problems: ['older_processes'],
        response: { 200: rewrappedSchema },
      },
    },
    async ({ principal }) => rewrapSecrets(deps, { actor: actorOf(principal) }),
  )
}
