/**
 * Adds labels and lists them, for operators and for keys. Labels and their audit row are one
 * transaction. The audit log is append-only, so it has counts and ids of labels, and no subject: an
 * erasure could not remove it.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Actor } from '#shared/core/alerts/actor-schema.ts'
import { toActor } from '#shared/core/alerts/alert-actors.ts'
import { toIso } from '#shared/core/base/instants.ts'
import { coveredDaysDefault, labelsMax } from '#shared/core/base/limits/outcomes.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { invalidKey, Problem, type ProblemDetail } from '#shared/core/http/problem.ts'
import { faultsListedMax } from '#shared/core/http/query-string.ts'
import {
  type DeclaredCodes,
  findLabelFault,
  type LabelCode,
  listCodes,
} from '#shared/core/outcomes/label-codes.ts'
import {
  aheadFault,
  type LabelBody,
  type LabelsBody,
  type LabelsQuery,
} from '#shared/core/outcomes/label-schemas.ts'
import {
  isAhead,
  type LabelSubject,
  type Outcome,
  subjectKinds,
  toOutcome,
} from '#shared/core/outcomes/labels.ts'
import { lockActiveKey } from '#shared/io/api-keys/api-key-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { readLabelCodes } from './label-code-store.ts'
import { insertLabels, type LabelView, listLabels, type NewLabel } from './label-store.ts'

export type AddLabels = {
  tenantId: string
  /** An operator's email, `admin`, or `api-key:` and its name. */
  actor: string
  /** The API key of the change: it must be active until the change is done. */
  keyHash?: Buffer
  body: LabelsBody
  /** The wall clock. */
  nowMs: number
}

/** What a label became; its place is that in the body. */
type AddedLabel = {
  label_id: string
  outcome: Outcome | null
  occurred_at: string
  /** Null of an event or a session. */
  covered_days: number | null
}

/**
 * Adds all labels of a call, or none.
 * @throws Problem invalid_body for an `occurred_at` that is far ahead and for a code that was not
 *   declared, conflict when the tenant has as many labels as it may, unauthorized when the key is
 *   no longer active
 */
export async function addLabels(
  postgres: Session,
  { tenantId, actor, keyHash, body, nowMs }: AddLabels,
): Promise<{ data: AddedLabel[] }> {
  requireNotAhead(body, nowMs)
  return postgres.transaction(async (tx) => {
    if (keyHash !== undefined && !(await lockActiveKey(tx, keyHash))) throw invalidKey()
    const codes = await readLabelCodes(tx, tenantId)
    requireKnownCodes(body, codes)
    const labels = [body].flat().map((one) => toNewLabel(one, codes, nowMs))
    if (!(await insertLabels(tx, { tenantId, actor, labels }))) {
      throw new Problem('conflict', `A tenant has at most ${labelsMax} labels.`)
    }
    await insertAudit(tx, { actor, tenantId, action: 'labels.added', after: toAudited(labels) })
    return { data: labels.map(toAdded) }
  })
}

/** What is further ahead than clocks and time zones differ is a mistake in the date. */
const requireNotAhead = (body: LabelsBody, nowMs: number): void =>
  requireEach(body, 'occurred_at', ({ occurred_at: atMs }) =>
    atMs !== undefined && isAhead(atMs, nowMs) ? aheadFault : null,
  )

const requireKnownCodes = (body: LabelsBody, codes: DeclaredCodes): void =>
  requireEach(body, 'label', ({ label }) => findLabelFault(label, codes))

/** @throws Problem invalid_body with the place of each label that has a fault */
function requireEach(
  body: LabelsBody,
  field: string,
  findFault: (label: LabelBody) => string | null,
): void {
  const errors: ProblemDetail[] = []
  for (const [at, label] of [body].flat().entries()) {
    const message = findFault(label)
    if (message === null) continue
    errors.push({ path: Array.isArray(body) ? `$[${at}].${field}` : `$.${field}`, message })
    // To name the nearest code is work, so no more are looked at than are listed.
    if (errors.length === faultsListedMax) break
  }
  if (errors.length === 0) return
  throw new Problem('invalid_body', 'The request body is not valid.', { errors })
}

/** The one subject that a body or a query names; undefined when a query names none. */
function findSubject(
  ids: Partial<Record<`${LabelSubject['kind']}_id`, string | undefined>>,
): LabelSubject | undefined {
  const kind = subjectKinds.find((one) => ids[`${one}_id`] !== undefined)
  return kind && { kind, id: ids[`${kind}_id`]! }
}

function toNewLabel(body: LabelBody, codes: DeclaredCodes, nowMs: number): NewLabel {
  return {
    labelId: `lbl_${randomBytes(16).toString('base64url')}`,
    subject: findSubject(body.subject)!,
    label: body.label,
    codeMeans: codes.get(body.label) ?? null,
    occurredAtMs: body.occurred_at ?? nowMs,
    coveredDays: body.covered_days ?? null,
    amount: body.amount ?? null,
    currency: body.currency ?? null,
    externalId: body.external_id ?? null,
    note: body.note || null,
  }
}

const isWide = ({ kind }: LabelSubject): boolean => kind === 'device' || kind === 'user'

const toAdded = ({
  labelId,
  subject,
  occurredAtMs,
  coveredDays,
  ...said
}: NewLabel): AddedLabel => ({
  label_id: labelId,
  outcome: toOutcome(said.label, said.codeMeans),
  occurred_at: toIso(occurredAtMs),
  covered_days: isWide(subject) ? (coveredDays ?? coveredDaysDefault) : null,
})

/** The first ids find the rest, which have the same time. */
const auditedIdsMax = 10

function toAudited(labels: readonly NewLabel[]) {
  const counts = new Map<string, number>()
  for (const { label } of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
  const labelIds = labels.slice(0, auditedIdsMax).map(({ labelId }) => labelId)
  return { labels: labels.length, by_label: Object.fromEntries(counts), label_ids: labelIds }
}

const positionSchema = z.tuple([instantMsSchema, z.string().max(26)])

type LabelPage<Row> = { data: Row[]; limit: number; next_cursor: string | null }

/**
 * A page of a tenant's labels, as operators see them.
 * @throws Problem invalid_query for a cursor of other filters, and for two subjects
 */
export const listLabelsByQuery = (
  db: Queryable,
  tenantId: string,
  query: LabelsQuery,
): Promise<LabelPage<LabelView>> => listPage(db, tenantId, query, (label) => label)

/** The same as keys see it: without the emails of operators. */
const listKeyedLabels = (
  db: Queryable,
  tenantId: string,
  query: LabelsQuery,
): Promise<LabelPage<Omit<LabelView, 'actor'> & { actor: Actor }>> =>
  listPage(db, tenantId, query, (label, actorId) => ({
    ...label,
    actor: toActor(label.actor, actorId),
  }))

/** Labels for the keys of tenants. @param nowMs the wall clock */
export function createKeyedLabels(postgres: Session, nowMs: () => number) {
  return {
    listLabels: (page: { tenantId: string; query: LabelsQuery }) =>
      listKeyedLabels(postgres, page.tenantId, page.query),
    listCodes: async ({ tenantId }: { tenantId: string }): Promise<LabelCode[]> =>
      listCodes(await readLabelCodes(postgres, tenantId)),
    addLabels: (wanted: Omit<AddLabels, 'nowMs'>) =>
      addLabels(postgres, { ...wanted, nowMs: nowMs() }),
  }
}

async function listPage<Row extends { created_at: string; label_id: string }>(
  db: Queryable,
  tenantId: string,
  { limit, cursor, from, to, label, external_id: externalId, ...ids }: LabelsQuery,
  toRow: (label: LabelView, actorId: string | null) => Row,
): Promise<LabelPage<Row>> {
  const subject = findSubject(ids)
  requireOneSubject(ids)
  const bound = [subject?.kind, subject?.id, label, externalId, from, to]
  const filters = bound.map((value) => value ?? null)
  const scope: CursorScope = { list: 'labels', tenantId, filters }
  const position = cursor === undefined ? null : decodeCursor(scope, cursor, positionSchema)
  const found = await listLabels(
    db,
    { tenantId, subject, label, externalId, fromMs: from, toMs: to },
    {
      limit: limit + 1,
      after: position === null ? null : { createdAtMs: position[0], labelId: position[1] },
    },
  )
  const data = found.slice(0, limit).map((one) => toRow(one.label, one.actorId))
  const last = data.at(-1)
  const next =
    found.length > limit && last !== undefined
      ? encodeCursor(scope, [Date.parse(last.created_at), last.label_id])
      : null
  return { data, limit, next_cursor: next }
}

function requireOneSubject(ids: Record<string, unknown>): void {
  const named = Object.keys(ids).filter((name) => ids[name] !== undefined)
  if (named.length <= 1) return
  throw new Problem('invalid_query', 'A label has one subject.', {
    errors: [{ path: named[1]!, message: `cannot be combined with ${named[0]}` }],
  })
}
