/** How people work on alerts: notes, changes of the disposition, and bulk changes. */
import { z } from 'zod'
import { dispositions } from './dispositions.ts'

const dispositionSchema = z.enum(dispositions)

export const noteSchema = z.object({
  note_id: z.int(),
  author: z.string(),
  note: z.string(),
  at: z.string(),
})
/** Times are ISO-8601, as in all of these. */
export type AlertNote = z.output<typeof noteSchema>

export const dispositionChangeSchema = z.object({
  at: z.string(),
  actor: z.string(),
  from: dispositionSchema,
  to: dispositionSchema,
  note: z.string().nullable(),
  job_id: z.string().nullable().describe('the bulk change that did it'),
  undo: z.boolean().describe('whether it put back what was before a bulk change'),
})
export type DispositionChange = z.output<typeof dispositionChangeSchema>

export const assignmentSchema = z.object({
  at: z.string(),
  actor: z.string(),
  from: z.string().nullable(),
  to: z.string().nullable().describe('null: it was taken away'),
  job_id: z.string().nullable().describe('the bulk change that did it'),
  undo: z.boolean().describe('whether it put back what was before a bulk change'),
})
export type Assignment = z.output<typeof assignmentSchema>

export const verdictCountsFields = {
  open: z.int(),
  reviewed: z.int(),
  false_positive: z.int(),
  confirmed: z.int(),
}
export const verdictCountsSchema = z
  .object(verdictCountsFields)
  .describe('alerts by what people said of them')
export type VerdictCounts = z.output<typeof verdictCountsSchema>

const otherCountsSchema = verdictCountsSchema.describe(
  'its other alerts by what people said of them, of the newest',
)
export const otherVerdictsSchema = z.object({
  device: otherCountsSchema,
  user: otherCountsSchema.nullable().describe('null when the alert has no user'),
})
export type OtherVerdicts = z.output<typeof otherVerdictsSchema>

export const bulkJobSchema = z
  .object({
    job_id: z.string(),
    tenant_id: z.string(),
    sets: z.enum(['disposition', 'assignee']),
    disposition: dispositionSchema.nullable().describe('what it sets; null of an undo'),
    assignee: z.string().nullable().describe('whom it assigns; null: it takes assignees away'),
    note: z.string().nullable(),
    actor: z.string(),
    state: z.enum(['running', 'done', 'cancelled']),
    total: z.int().describe('alerts that were meant when it began'),
    done: z.int().describe('alerts looked at; fewer than `total` where others changed some first'),
    changed: z.int().describe('alerts that it changed'),
    kept: z.int().describe('of an undo: alerts that were changed again after the job, which stay'),
    undo_of: z.string().nullable().describe('the job that this one undoes'),
    undone_by: z.string().nullable().describe('the job that undoes this one'),
    created_at: z.string(),
    ended_at: z.string().nullable(),
  })
  .meta({ id: 'BulkJob' })
/** A bulk change as operators see it. */
export type BulkJob = z.output<typeof bulkJobSchema>
