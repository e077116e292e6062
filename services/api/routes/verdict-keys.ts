/** `GET /v1/di/verdict-keys`: the public keys that verify verdict tokens, for everyone. */
import { verdictKeysCacheSeconds } from '#shared/core/base/limits/tenants.ts'
import { type VerdictKeySet, verdictKeySetSchema } from '#shared/core/verdicts/verdict-keys.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { verdictKeysPath } from '../openapi/document.ts'
import { verdictKeySetExample } from '../openapi/examples.ts'

export type VerdictKeyRouteDeps = {
  readVerdictKeys: () => Promise<VerdictKeySet>
  /** @throws Problem rate_limited */
  takeCallOf: (address: string) => void
}

/** Adds the route. */
export function addVerdictKeyRoute(app: ZodApp, deps: VerdictKeyRouteDeps): void {
  app.get(
    verdictKeysPath,
    {
      schema: {
        operationId: 'listVerdictKeys',
        conditional: true,
        tags: ['Verdicts'],
        summary: 'The keys that verify verdict tokens',
        description:
          'A JSON Web Key Set; it needs no API key. A key is in it for eleven minutes before it ' +
          'signs and until its last token has expired, so keep it for as long as `Cache-Control` says, and ' +
          'fetch it once more for a token with an unknown `kid`.',
        response: { 200: verdictKeySetSchema },
        example: verdictKeySetExample,
      },
    },
    async (request, reply) => {
      deps.takeCallOf(request.ip)
      const keys = await deps.readVerdictKeys()
      // The first key may sign as soon as it is there.
      const isKept = keys.keys.length > 0
      reply.header(
        'cache-control',
        isKept ? `public, max-age=${verdictKeysCacheSeconds}` : 'no-store',
      )
      return keys
    },
  )
}
