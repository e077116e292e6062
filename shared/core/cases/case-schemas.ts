/**
 * The schemas of cases in the admin API.
 *
 * A **case** is what analysts settle in place of single alerts. `subject` says whom it is about: a
 * phone (`phn_…`), a device or a user. `state` is OPEN exactly while one of its alerts is OPEN;
 * `snoozed_until` is set while it waits (it is open, and not in the queue). `alerts` and
 * `open_alerts` are exact. `risk_score` and `action` are the highest and the worst of all of its
 * alerts, `flags` are those of most alerts first, each with how many have it. `due_at` is when the
 * first of its open alerts is overdue by the tenant's rules; `breached` says that this is past.
 * `assignee` is of the case; its alerts have their own. `judged_by` set a disposition of one of its
 * alerts last, in the case or elsewhere. `leased_by` has it from `next`, until `leased_until`.
 * `merged_into` names the case that has its alerts now. `version` rises whenever its alerts or
 * their dispositions change: send it as `expected_version` and nothing unseen is judged.
 *
 * The **queue** is `GET /tenants/{id}/cases` with the filters below; `POST …/cases/next` hands out
 * the first case of the same filters and sort that nobody has. The alerts of a case are
 * `GET /tenants/{id}/alerts?case_id=…`. A **judgement** sets the disposition of its open alerts
 * and, in the same transaction, may add labels and list entries for its devices or users.
 */
import { z } from 'zod'
import { decisions, dispositions } from '#shared/core/alerts/dispositions.ts'
import {
  caseChangedAlertsMax,
  caseSnoozeDaysMax,
  caseSplitAlertsMax,
  caseSubjectsMax,
  casesPageDefault,
  casesPageMax,
  dueHoursMax,
  reopenDaysMax,
} from '#shared/core/base/limits/alerts.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import {
  cursorParameter,
  instantParameter,
  pageSize,
  someOf,
} from '#shared/core/http/api-schemas.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { listEntryBody } from '#shared/core/lists/list-schemas.ts'
import { emailSchema } from '#shared/core/operators/email-schema.ts'
import { labelBody } from '#shared/core/outcomes/label-schemas.ts'
import { severities } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { caseEventKinds, caseStates, caseSubjectKinds, queueStates } from './case.ts'

const caseIdSchema = z
  .string()
  .regex(/^cas_[A-Za-z0-9_-]{22}$/, 'must be cas_ and 22 characters')
  .meta({ examples: ['cas_Vn3mX0o8Qm2pC1nY5vJ7wA'] })

export const casePath = z.object({ case_id: caseIdSchema })

const caseFields = {
  case_id: z.string(),
  tenant_id: z.string(),
  subject: z
    .object({ kind: z.enum(caseSubjectKinds), id: z.string() })
    .describe('whom it is about; an alert without phone or user is its device’s'),
  state: z.enum(caseStates).describe('OPEN exactly while one of its alerts is OPEN'),
  snoozed_until: z.string().nullable().describe('set while it is snoozed: when it comes back'),
  alerts: z.int().min(0),
  open_alerts: z.int().min(0).describe('alerts whose disposition is OPEN'),
  risk_score: z.int().describe('the highest of its alerts'),
  severity: z.enum(severities).describe('of `risk_score`'),
  action: z.enum(decisions).describe('the worst of its alerts'),
  flags: z
    .array(z.object({ code: z.string(), alerts: z.int() }))
    .describe('with how many alerts have each, most first'),
  first_alert_at: z.string(),
  latest_alert_at: z.string(),
  due_at: z
    .string()
    .nullable()
    .describe('when the first of its open alerts is overdue; null when it has none'),
  breached: z.boolean().describe('whether `due_at` is past'),
  assignee: z.string().nullable().describe('the email of an operator'),
  judged_by: z.string().nullable().describe('who last set a disposition of one of its alerts'),
  judged_at: z.string().nullable(),
  leased_by: z.string().nullable().describe('who has it from `next`, or opened it last from there'),
  leased_until: z.string().nullable(),
  merged_into: z.string().nullable().describe('the case that its alerts were moved to'),
  version: z.int().describe('rises whenever its alerts or their dispositions change'),
}

const moneySchema = z
  .array(z.object({ currency: z.string(), amount: z.string() }))
  .describe('what labels of its devices, users and sessions say was lost, by currency')

/** A case without what is read beside it, as changes answer. */
export const caseSchema = z.object(caseFields).meta({ id: 'Case' })

/** A row of the queue. */
export const caseRowSchema = z
  .object({
    ...caseFields,
    money: moneySchema,
    here: z.array(z.string()).describe('who has it open at this moment, by email'),
  })
  .meta({ id: 'CaseRow' })
export type CaseListRow = z.output<typeof caseRowSchema>

const caseEventSchema = z.object({
  at: z.string(),
  actor: z.string().describe('an operator’s email, `admin`, or `system`'),
  kind: z.enum(caseEventKinds),
  details: z
    .record(z.string(), z.unknown())
    .describe(
      'judged: disposition, alerts, note, label, list; snoozed: until; assigned: from, to; merged: ' +
        'from, into, alerts; split: from, into, alerts; regrouped: from, into, alerts, ' +
        'from_phone_id, phone_id',
    ),
})
export const caseNoteSchema = z.object({
  note_id: z.int(),
  author: z.string(),
  note: z.string(),
  at: z.string(),
})

/** One case with all about it; its alerts are a list of their own. */
export const caseDetailSchema = z
  .object({
    case: caseRowSchema,
    devices: z.array(z.string()).describe(`of its alerts; at most ${caseSubjectsMax}`),
    users: z.array(z.string()).describe(`of its alerts; at most ${caseSubjectsMax}`),
    notes: z.array(caseNoteSchema).describe('oldest first'),
    history: z.array(caseEventSchema).describe('oldest first'),
  })
  .meta({ id: 'CaseDetail' })
export type CaseDetail = z.output<typeof caseDetailSchema>

export const caseSorts = ['due', 'risk', 'latest'] as const
export type CaseSort = (typeof caseSorts)[number]

const sortSchema = z
  .enum(caseSorts)
  .default('due')
  .describe('due: the first to be overdue first; risk: highest first; latest: newest alert first')

/** The value of `assignee` for cases without one, and for those of whoever asks. */
export const noAssignee = 'none'
export const ownAssignee = 'me'

/** Whole words of a query string; in a saved view and a body they are the same texts. */
const queueFilters = {
  state: someOf(queueStates, 'OPEN is what is open and not snoozed; left out, all.'),
  action: someOf(decisions, 'Cases whose worst action is this.'),
  min_risk: z
    .string()
    .regex(/^(?:100|\d{1,2})$/, 'must be a whole number from 0 to 100')
    .transform(Number)
    .optional()
    .meta({ type: 'integer', minimum: 0, maximum: 100, pattern: undefined }),
  flag: someOf(flagCodes as unknown as readonly [string, ...string[]], 'One of its alerts has it.'),
  assignee: z
    .union([z.enum([noAssignee, ownAssignee]), emailSchema])
    .optional()
    .describe('an operator’s email; `me`; `none`: cases without an assignee'),
  subject_kind: someOf(caseSubjectKinds, 'Whom cases are about.'),
  breached: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .meta({ description: 'Whether `due_at` is past.' }),
  begun_from: instantParameter('Cases whose first alert was raised at this instant or later.'),
  begun_to: instantParameter('Cases whose first alert was raised before this instant.'),
  q: operatorText(256).optional().meta({ description: 'A part of the id of the subject.' }),
}

export const caseFilterSchema = z.strictObject(queueFilters)
export type CaseFilter = z.output<typeof caseFilterSchema>

export const casesQuery = z.strictObject({
  ...queueFilters,
  sort: sortSchema,
  limit: pageSize(casesPageMax, casesPageDefault, `Cases in a page, at most ${casesPageMax}.`),
  cursor: cursorParameter('`next_cursor` of the previous page, with the same filters and sort.'),
})
export type CasesQuery = z.output<typeof casesQuery>

export const casePageSchema = z.object({
  data: z.array(caseRowSchema),
  limit: z.int(),
  next_cursor: z.string().nullable(),
})

/** How many cases match the filters, whatever `state` and `breached` say. */
export const caseCountsSchema = z.object({
  open: z.int().describe('open and not snoozed'),
  snoozed: z.int(),
  closed: z.int(),
  breached: z.int().describe('open, snoozed or not, and overdue'),
})
export type CaseCounts = z.output<typeof caseCountsSchema>

/**
 * `next` never hands out a case that anyone has a lease of, the caller included, one that is
 * snoozed or closed, or one that is assigned to someone else unless the filter names them.
 */
export const nextCaseBody = z.strictObject({
  filter: caseFilterSchema
    .omit({ state: true })
    .default({})
    .describe('the parameters of the list as texts, such as {"action": "BLOCK"}'),
  sort: sortSchema,
  leave: caseIdSchema
    .optional()
    .describe('the case that you leave: its lease ends once the next one is found'),
})
export const nextCaseSchema = z.object({
  case: caseRowSchema.nullable().describe('null when the queue has none that is free'),
})

/** For whom a judgement labels or lists: every device or every user of the case's alerts. */
const onSchema = z
  .enum(['device', 'user'])
  .optional()
  .describe(
    'every device, or every user, of its alerts, at most ' +
      `${caseSubjectsMax}; left out, users of a case about a user, else devices`,
  )

export const judgementBody = z.strictObject({
  disposition: z.enum(dispositions).exclude(['OPEN']),
  note: operatorText(noteCharactersMax).nullish().describe('in the history of every alert'),
  expected_version: z
    .int()
    .optional()
    .describe(
      '`version` that you saw: when it rose since, nothing is judged and the answer is 409',
    ),
  label: z
    .strictObject({ ...labelBody.shape, on: onSchema })
    .omit({ subject: true })
    .optional(),
  list: z
    .strictObject({ ...listEntryBody.shape, on: onSchema })
    .omit({ kind: true, id: true })
    .optional(),
})
export type JudgementBody = z.output<typeof judgementBody>

export const judgedSchema = z.object({
  case: caseSchema,
  judged: z.int().describe(`alerts whose disposition was set; at most ${caseChangedAlertsMax}`),
  label_ids: z.array(z.string()),
  entry_ids: z.array(z.string()).describe('entries of the lists'),
})
export type Judged = z.output<typeof judgedSchema>

export const snoozeBody = z.strictObject({
  until: instantParameter(
    `When it comes back, at most ${caseSnoozeDaysMax} days ahead; null wakes it now.`,
  )
    .unwrap()
    .nullable(),
})
export const caseAssigneeBody = z.strictObject({
  assignee: emailSchema.nullable().describe('the email of an operator; null: unassigned'),
})
export const mergeBody = z.strictObject({
  into: caseIdSchema.describe('the case that gets the alerts, the notes, and later alerts'),
})
export const splitBody = z.strictObject({
  alert_ids: z
    .array(z.string().regex(/^alr_[A-Za-z0-9_-]{1,60}$/))
    .min(1)
    .max(caseSplitAlertsMax)
    .describe('alerts of the case, and not all of them'),
})
/** Of a merge the case that has the alerts now, of a split the new one and the one it is from. */
export const splitSchema = z.object({ case: caseSchema, from: caseSchema })

/** Who has a case open, the caller included; pages send it every 10 s and when they close. */
export const presenceSchema = z.object({
  here: z.array(z.object({ operator: z.string(), since: z.string() })),
})

export const caseRulesSchema = z
  .object({
    group_by: z
      .enum(caseSubjectKinds)
      .describe('phone and user: an alert without one falls into a case of its device'),
    reopen_days: z
      .int()
      .min(0)
      .max(reopenDaysMax)
      .describe('days after its end in which a new alert opens a closed case again; 0: never'),
    block_due_hours: z
      .int()
      .min(1)
      .max(dueHoursMax)
      .describe('hours after which an open alert of BLOCK is overdue'),
    review_due_hours: z.int().min(1).max(dueHoursMax),
  })
  .meta({ id: 'CaseRules' })
export type CaseRulesView = z.output<typeof caseRulesSchema>
export const caseRulesBody = z.strictObject(caseRulesSchema.shape)

/** An event `cases` of the stream of alerts. */
export const announcedCasesSchema = z.object({
  cases: z.array(z.object({ case_id: z.string(), state: z.enum(caseStates) })),
  more: z.boolean().describe('whether others changed as well: read the list again'),
})
export type AnnouncedCases = z.output<typeof announcedCasesSchema>
