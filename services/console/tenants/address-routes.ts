/** The route of the public addresses, which pages fill into the programs that they show. */
import { z } from 'zod'
import type { ConsoleApp } from '../http/admin-app.ts'

export type AddressRouteDeps = {
  /** `PUBLIC_INGEST_URL` and `PUBLIC_API_URL`. */
  clientUrls: { ingest: string | undefined; api: string | undefined }
}

const addressesSchema = z.object({
  ingest_url: z.string().nullable().describe('PUBLIC_INGEST_URL; null when it is not set'),
  api_url: z.string().nullable().describe('PUBLIC_API_URL; null when it is not set'),
})

/** Adds the route. */
export function addAddressRoutes(app: ConsoleApp, { clientUrls }: AddressRouteDeps): void {
  app.get(
    '/addresses',
    {
      schema: {
        operationId: 'findAddresses',
        tags: ['Submissions'],
        summary: 'Where clients reach ingest and the REST API',
        response: { 200: addressesSchema },
      },
    },
    async () => ({ ingest_url: clientUrls.ingest ?? null, api_url: clientUrls.api ?? null }),
  )
}
