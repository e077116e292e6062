/** The body and the answers of the batch address of ingest: documentation, and a check of tests. */
import { z } from 'zod'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import {
  clientBatchBytesMax,
  clientBatchEventsMax,
  clientBatchFaultsMax,
} from '#shared/core/base/limits/ingest.ts'
import { ingestResultSchema, submissionSchema } from './api-schemas.ts'

/** @public The OpenAPI document finds it by its id. */
export const submissionBatchSchema = z
  .strictObject({
    tenant_id: z.string().regex(tenantIdPattern).meta({ description: 'That of every event.' }),
    events: z
      .array(submissionSchema)
      .min(1)
      .max(clientBatchEventsMax)
      .meta({
        description:
          'Each is a whole submission, as it is sent alone: its bytes within the batch are its ' +
          'body and make its `event_id`.',
      }),
  })
  .meta({ description: `At most ${clientBatchBytesMax} bytes.` })
  .meta({ id: 'SubmissionBatch' })

const invalidEventSchema = z.object({
  status: z.literal('invalid'),
  code: z.enum(['invalid_body', 'body_too_large']),
  detail: z.string(),
  errors: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .max(clientBatchFaultsMax)
    .optional()
    .meta({ description: 'Paths are those of the event.' }),
})

const countSchema = z.int().min(0)

export const batchResultSchema = z
  .object({
    accepted: countSchema.meta({ description: 'Events that are durably stored.' }),
    invalid: countSchema.meta({ description: 'Events that are refused. A retry changes nothing.' }),
    events: z
      .array(z.discriminatedUnion('status', [ingestResultSchema, invalidEventSchema]))
      .meta({ description: 'One entry for each event, in the order of the batch.' }),
  })
  .meta({ id: 'BatchResult' })
