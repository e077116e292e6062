/** What the routes of erasures take and answer. */
import { z } from 'zod'
import { idSchema as subjectIdSchema } from '#shared/core/telemetry/submission.ts'
import { erasureStores } from '#shared/io/erasure/erasure-job-store.ts'
import { pageQuery, pageSchema } from '../http/paging.ts'
import { idSchema, tenantParams } from '../http/schemas.ts'

const subjectFields = {
  device_id: subjectIdSchema.optional(),
  user_id: subjectIdSchema.optional(),
}
const namesOne = (body: { device_id?: string | undefined; user_id?: string | undefined }) =>
  (body.device_id === undefined) !== (body.user_id === undefined)
const oneSubject = 'must have one of device_id and user_id'

export const erasureSubjectBody = z
  .strictObject(subjectFields)
  .refine(namesOne, oneSubject)
  .describe('A user is a user_id or an account_id of events.')

export const erasureBody = z
  .strictObject({
    ...subjectFields,
    wait: z
      .boolean()
      .default(true)
      .describe('false: answer 202 with the erasure at once, which goes on in the server'),
  })
  .refine(namesOne, oneSubject)
  .describe('A user is a user_id or an account_id of events.')
  .meta({ examples: [{ device_id: '4f6c1d8e-device' }, { user_id: 'user-1729', wait: false }] })

const subjectSchema = z.object({
  kind: z.enum(['device', 'user']),
  sha256: z.string().describe('of the id, which is not kept'),
})

export const receiptSchema = z
  .object({
    tenant_id: z.string(),
    subject: subjectSchema,
    started_at: z.string(),
    finished_at: z.string(),
    counts: z
      .record(z.string(), z.object({ before: z.number().int(), after: z.number().int() }))
      .describe('by store and its table or stream'),
    kept_mentions: z
      .object({
        events: z
          .number()
          .int()
          .nullable()
          .describe(
            'events of other devices or users whose body has the id in a free field; null when the ' +
              'tenant has too many bodies to search',
          ),
        others: z
          .array(
            z.object({
              place: z.string().describe('a store, its table and its column'),
              rows: z.number().int().nullable().describe('null when there are too many to search'),
            }),
          )
          .describe('every other place that has the id, such as notes of people'),
      })
      .describe('What has the id as a word and is about others. It is not removed.'),
    notes: z.array(z.string()),
  })
  .meta({ id: 'ErasureReceipt' })

export const erasureSchema = z
  .object({
    erasure_id: z.string(),
    tenant_id: z.string(),
    subject: subjectSchema,
    state: z
      .enum(['waiting', 'running', 'done', 'failed'])
      .describe('`waiting` also between two attempts; `failed` is final'),
    requested_by: z.string(),
    created_at: z.string(),
    started_at: z.string().nullable(),
    ended_at: z.string().nullable(),
    progress: z.array(
      z.object({
        store: z.enum(erasureStores),
        state: z.enum(['waiting', 'erasing', 'erased']),
        rows: z.int().nullable().describe('what the store held before; null until it was counted'),
      }),
    ),
    problem: z
      .string()
      .nullable()
      .describe('why the last attempt did not complete it; it is tried again by itself'),
    receipt: receiptSchema.nullable(),
  })
  .meta({ id: 'Erasure' })

export const erasuresQuery = z.strictObject(pageQuery(100, 20))
export const erasuresSchema = pageSchema(erasureSchema)

export const erasureParams = tenantParams.extend({ erasure_id: idSchema })
