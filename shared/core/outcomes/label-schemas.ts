/** The schemas of labels, for the REST API, the admin API and the files that `di` reads. */
import { z } from 'zod'
import { actorSchema } from '#shared/core/alerts/actor-schema.ts'
import { dayMs, parseInstant } from '#shared/core/base/instants.ts'
import {
  coveredDaysDefault,
  coveredDaysMax,
  externalIdCharactersMax,
  labelNoteCharactersMax,
  labelOccurredMsMin,
  labelsPageDefault,
  labelsPageMax,
  labelsPerCallMax,
} from '#shared/core/base/limits/outcomes.ts'
import { controlCharacters } from '#shared/core/base/visible-text.ts'
import { cursorParameter, instantParameter, pageSize } from '#shared/core/http/api-schemas.ts'
import { instantSchema } from '#shared/core/http/field-schemas.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { findCodeFault } from './label-codes.ts'
import { fraudLabels, legitimateLabel, outcomes, retractedLabel } from './labels.ts'
import { amountPattern, findAmountFault, isCurrency } from './money.ts'

const codeForm = z
  .string()
  .regex(
    /^[a-z][a-z0-9_-]{0,39}$/,
    'must be a code of 1 to 40 lower-case letters, digits, hyphens and underscores that begins with a letter',
  )

const codeSchema = codeForm.meta({
  description: `What it turned out to be: ${[...fraudLabels, legitimateLabel].map((name) => `\`${name}\``).join(', ')}, or a code that was declared for your tenant (\`GET /v1/di/labels/codes\`). \`${retractedLabel}\` takes back what was said of the subject under the same \`external_id\`.`,
  examples: ['chargeback', 'mule_account'],
})

const subjectIdSchema = idSchema.refine(
  (id) => !isPlaceholderId(id),
  'is a placeholder that many devices or users share',
)
const eventIdSchema = z
  .string()
  .regex(/^evt_[A-Za-z0-9_-]{22}$/, 'must be the event_id of an answer of ingest')

const subjectFields = {
  event_id: eventIdSchema.optional(),
  session_id: subjectIdSchema.optional(),
  device_id: subjectIdSchema.optional(),
  user_id: subjectIdSchema.optional().meta({ description: 'A `user_id` or an `account_id`.' }),
}

const subjectSchema = z
  .strictObject(subjectFields)
  .refine(
    (subject) => Object.values(subject).filter((id) => id !== undefined).length === 1,
    'must have one of event_id, session_id, device_id and user_id',
  )
  .meta({
    description:
      'One of the four. It need not be known: a label may come before its events or long after.',
    examples: [{ device_id: '4f6c1d8e-51c5-4d8b-9a57-0c2b4f1a7e33' }],
  })

/** Of an `occurred_at` for which `isAhead` is true. */
export const aheadFault = 'is in the future'

const dateOnly = /^\d{4}-\d\d-\d\d$/

/** In ms. A date is its end: what happened on that day happened before. */
const occurredAtSchema = z
  .string()
  .transform((text, context) => {
    const ms = parseInstant(text)
    const fault =
      ms === null
        ? 'must be an ISO-8601 date, or date and time with its offset'
        : ms < labelOccurredMsMin
          ? 'is before 2000: an exporter without a date sends such a time'
          : null
    if (fault === null) return dateOnly.test(text) ? ms! + dayMs - 1 : ms!
    context.addIssue({ code: 'custom', message: fault })
    return z.NEVER
  })
  .meta({
    description:
      'When it happened; a date counts to its end in UTC. Left out, it is the time of receipt. At most two days ahead.',
    examples: ['2026-03-01T09:30:00Z', '2026-03-01'],
  })

const amountSchema = z
  .string({
    error: ({ input }) =>
      typeof input === 'number'
        ? 'must be a text such as "129.90": numbers lose digits'
        : undefined,
  })
  .regex(
    amountPattern,
    'must be a decimal text such as 129.90, not negative, with at most 12 digits before the point and 4 behind',
  )
  .meta({
    description:
      'The money that was lost, as a decimal text: a number in JSON is binary in most clients and would not add up. Needs `currency`.',
    examples: ['129.90'],
  })
const currencySchema = z
  .string()
  .refine(isCurrency, 'must be the code of a currency, ISO 4217, in capitals, such as EUR')
  .meta({ description: 'ISO 4217. Currencies are never added together.', examples: ['EUR'] })

const externalIdSchema = z
  .string()
  .min(1)
  .max(externalIdCharactersMax)
  .refine((id) => !controlCharacters.test(id), 'must not contain control characters')
  .refine((id) => id.isWellFormed(), 'must not contain a lone surrogate')
  .meta({
    description:
      'Your id of the case, such as that of a chargeback. The latest label of a subject and `external_id` counts, and a loss with one id counts once.',
    examples: ['cb-2026-00017'],
  })

const coveredDaysSchema = z
  .int()
  .min(1)
  .max(coveredDaysMax)
  .meta({
    description: `Of a device or a user: it covers the sessions that began up to so many days before \`occurred_at\`, ${coveredDaysDefault} when left out.`,
  })

/** The code of a declaration, which must differ from the labels that every tenant has. */
export const newCodeSchema = codeForm.superRefine((code, context) => {
  const fault = findCodeFault(code)
  if (fault !== null) context.addIssue({ code: 'custom', message: fault })
})

/** What a code is declared to mean. */
export const codeMeaningBody = z.strictObject({
  means: z.enum(outcomes).meta({ description: 'What a label of this code counts as.' }),
})

/** A label that a tenant may use. */
export const labelCodeSchema = z
  .object({
    code: z.string().meta({ examples: ['mule_account'] }),
    means: z
      .enum(outcomes)
      .nullable()
      .meta({ description: 'What a label of this code counts as; null of `retracted`.' }),
    is_declared: z.boolean().meta({
      description: 'Whether it was declared for the tenant; every tenant has the others.',
    }),
  })
  .meta({ id: 'LabelCode' })

/** One label, as it is sent. */
export const labelBody = z
  .strictObject({
    subject: subjectSchema,
    label: codeSchema,
    occurred_at: occurredAtSchema.optional(),
    covered_days: coveredDaysSchema.optional(),
    amount: amountSchema.optional(),
    currency: currencySchema.optional(),
    external_id: externalIdSchema.optional(),
    note: operatorText(labelNoteCharactersMax).optional(),
  })
  .superRefine(({ subject, label, amount, currency, covered_days: days }, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (amount === undefined && currency !== undefined) fault('amount', 'is missing')
    if (amount !== undefined && currency === undefined) fault('currency', 'is missing')
    if (amount !== undefined && currency !== undefined) {
      const wrong = findAmountFault(amount, currency)
      if (wrong !== null) fault('amount', wrong)
    }
    if (amount !== undefined && label === retractedLabel) {
      fault('amount', 'must be left out of a retraction')
    }
    const isWide = subject.device_id !== undefined || subject.user_id !== undefined
    if (days !== undefined && !isWide) {
      fault('covered_days', 'must be left out: an event or a session is one session')
    }
  })
  .meta({ id: 'NewLabel' })
export type LabelBody = z.output<typeof labelBody>

/** The body that adds labels: one, or a list of them. */
export const labelsBody = z
  .union([labelBody, z.array(labelBody).min(1).max(labelsPerCallMax)])
  .meta({ description: `One label, or 1 to ${labelsPerCallMax} of them.` })
export type LabelsBody = z.output<typeof labelsBody>

const labelIdSchema = z.string().meta({ examples: ['lbl_Vn3mX0o8Qm2pC1nY5vJ7wA'] })
const outcomeSchema = z
  .enum(outcomes)
  .nullable()
  .meta({ description: 'What the label counts as; null of a retraction.' })

/** What was stored, in the order of the body. */
export const addedLabelsSchema = z.object({
  data: z.array(
    z.object({
      label_id: labelIdSchema,
      outcome: outcomeSchema,
      occurred_at: instantSchema,
      covered_days: z.int().nullable(),
    }),
  ),
})

const labelFields = {
  label_id: labelIdSchema,
  subject: z.object({
    event_id: z.string().optional(),
    session_id: z.string().optional(),
    device_id: z.string().optional(),
    user_id: z.string().optional(),
  }),
  label: z.string(),
  outcome: outcomeSchema,
  is_latest: z.boolean().meta({
    description: 'Whether it is the latest of its subject and `external_id`: only these count.',
  }),
  occurred_at: instantSchema,
  covered_days: z.int().nullable().meta({ description: 'Null of an event or a session.' }),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  external_id: z.string().nullable(),
  note: z.string().nullable(),
  created_at: instantSchema.meta({ description: 'When it was received.' }),
}

/** A label as a tenant's key sees it. */
export const labelSchema = z
  .object({ ...labelFields, actor: actorSchema })
  .meta({ description: 'What a subject turned out to be.' })
  .meta({ id: 'Label' })

/** A label as operators see it. */
export const adminLabelSchema = z.object({
  ...labelFields,
  actor: z.string().describe('an operator’s email, `admin`, or `api-key:` and its name'),
})

/** The query of a list of labels. */
export const labelsQuery = z.strictObject({
  event_id: eventIdSchema.optional(),
  session_id: idSchema.optional(),
  device_id: idSchema.optional(),
  user_id: idSchema.optional(),
  label: codeForm.optional(),
  external_id: externalIdSchema.optional(),
  from: instantParameter('Received at this instant or later.'),
  to: instantParameter('Received before this instant.'),
  limit: pageSize(labelsPageMax, labelsPageDefault, `At most ${labelsPageMax}.`),
  cursor: cursorParameter('`next_cursor` of the previous answer, with the same filters.'),
})
export type LabelsQuery = z.output<typeof labelsQuery>

export const toLabelPageSchema = <T extends z.ZodType>(label: T) =>
  z.object({
    data: z.array(label).meta({ description: 'Newest first, superseded ones included.' }),
    limit: z.int().min(1).max(labelsPageMax),
    next_cursor: z.string().nullable(),
  })
