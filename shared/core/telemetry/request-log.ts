/**
 * The request log: the latest submissions of a tenant, which each edge keeps in memory. A console
 * queries the edges when a person looks. Query and answers have a proof, which binds the query.
 */
import { z } from 'zod'

/** What a client sent: telemetry, or the registration of an install. */
export const submissionKinds = ['telemetry', 'registration'] as const
export type SubmissionKind = (typeof submissionKinds)[number]

/** One submission as an edge answered it. */
export const requestLogEntrySchema = z.object({
  /** Absent in the answers of older edges, which remember telemetry alone. */
  kind: z.enum(submissionKinds).default('telemetry'),
  /** When it was decided, by the edge's clock, in ms since 1970. */
  at_ms: z.number().int(),
  request_id: z.string(),
  status: z.number().int(),
  /** `accepted`, or the problem's code. */
  code: z.string(),
  /** Why it was refused; null when it was accepted. */
  reason: z.string().nullable(),
  /** Faults of a body, as the client was answered. */
  detail: z.string().nullable(),
  /** False when its signature was not verified: anyone can have sent it, and chosen its texts. */
  verified: z.boolean(),
  device_id: z.string().nullable(),
  sdk_version: z.string().nullable(),
  event_id: z.string().nullable(),
  rasp_score: z.number().nullable(),
  rasp_action: z.string().nullable(),
})
export type RequestLogEntry = z.infer<typeof requestLogEntrySchema>

/** What a console wants to know of every edge. */
export const requestLogQuerySchema = z.object({
  query_id: z.string(),
  tenant_id: z.string(),
  /** Devices to forget before the answer; null for the whole log of the tenant. */
  forget: z.object({ device_ids: z.array(z.string()).nullable() }).optional(),
})
export type RequestLogQuery = z.infer<typeof requestLogQuerySchema>

/** What one edge remembers of a tenant, in no order. */
export const requestLogAnswerSchema = z.object({
  edge_id: z.string(),
  /** When its memory began, by its clock, in ms since 1970. */
  since_ms: z.number().int(),
  /** Refused submissions of any tenant that were not noted, because too many came at once. */
  left_out: z.number().int(),
  entries: z.array(requestLogEntrySchema),
})
export type RequestLogAnswer = z.infer<typeof requestLogAnswerSchema>

/** What the proof of a query binds. */
export const requestLogQueryContext = ['query'] as const

/** What the proof of an answer binds: an answer to another query proves nothing. */
export const requestLogAnswerContext = (query: RequestLogQuery) =>
  ['answer', query.query_id, query.tenant_id] as const
