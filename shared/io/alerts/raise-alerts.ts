/**
 * Raises alerts: each once, however often and by whichever scorer it is raised, numbered without a
 * gap. Alerts, their cases, deliveries and counters are written in one transaction, under the locks
 * of the tenants' sequences (alert-lock.ts).
 */

import { toAlert, unchanged } from '#shared/core/alerts/alert.ts'
import { type AlertCandidate, toAlertRow } from '#shared/core/alerts/decide-alert.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import type { CaseRules } from '#shared/core/cases/case-rules.ts'
import { raiseIntoCases, toRaisedSubject } from '#shared/core/cases/raised-cases.ts'
import {
  isSqlState,
  type Queryable,
  type Session,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { type RowColumn, toArrays, toUnnest } from '#shared/io/postgres/unnest.ts'
import { lockSequences, type Sequences } from './alert-lock.ts'
import {
  type CaseRulesRow,
  caseRulesColumns,
  findCorrectedPhones,
  findPresentCases,
  newCaseId,
  toCaseRules,
} from './cases/present-cases.ts'
import { caseColumns, raiseCasesSql } from './cases/raise-cases-sql.ts'

export type RaisedAlert = { tenantId: string; alertId: string; deliveryId: string }

export type RaiseOutcome = {
  /** New alerts, by tenant and `seq`. */
  raised: RaisedAlert[]
  /** Number of alerts that existed before. */
  existing: number
  /** Tenants that do not exist; their candidates are ignored. */
  unknownTenants: string[]
}

/**
 * Raises alerts with their deliveries, due now. It is idempotent; of two candidates of one alert
 * the first applies.
 * @param toNowMs dates the alerts, from the clock of Postgres under the lock: all scorers use one
 *   clock, so a tenant's alerts are never out of order
 * @throws PostgresUnavailableError; the outcome is unknown then, so repeat the call
 */
export async function raiseAlerts(
  postgres: Session,
  candidates: readonly AlertCandidate[],
  toNowMs: (postgresMs: number) => number = (postgresMs) => postgresMs,
): Promise<RaiseOutcome> {
  const unique = dedupe(candidates)
  if (unique.length === 0) return { raised: [], existing: 0, unknownTenants: [] }
  const tenantIds = [...new Set(unique.map((candidate) => candidate.tenantId))]
  for (;;) {
    const outcome = await postgres.transaction(async (tx) => {
      const sequences = await lockSequences(tx, tenantIds)
      return sequences === null ? null : raiseLocked(tx, unique, sequences, toNowMs)
    })
    if (outcome !== null) return outcome
    await insertSequences(postgres, tenantIds)
  }
}

/**
 * @returns the candidates whose alerts do not exist yet. Without a lock: another scorer may raise
 *   them at this moment.
 */
export async function findUnraised(
  postgres: Queryable,
  candidates: readonly AlertCandidate[],
): Promise<AlertCandidate[]> {
  const existing = await findExisting(postgres, candidates)
  return candidates.filter(
    (candidate) => !existing.has(`${candidate.tenantId} ${candidate.alertId}`),
  )
}

/** Keeps the first candidate of each alert. */
function dedupe(candidates: readonly AlertCandidate[]): AlertCandidate[] {
  const byId = new Map<string, AlertCandidate>()
  for (const candidate of candidates) {
    const key = `${candidate.tenantId} ${candidate.alertId}`
    if (!byId.has(key)) byId.set(key, candidate)
  }
  // Ascending ids within a tenant: alerts of one instant then have `seq` in the order of the list.
  return [...byId.values()].sort((a, b) => compare(a.alertId, b.alertId))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Inserts missing sequence rows. In its own transaction: the inserter locks a new row, which would
 * break the order of locks in a longer transaction.
 */
async function insertSequences(postgres: Session, tenantIds: string[]): Promise<void> {
  try {
    await postgres.query(
      `insert into alert_sequences (tenant_id)
       select tenant_id from tenants where tenant_id = any($1) order by tenant_id
       on conflict (tenant_id) do nothing`,
      [tenantIds],
    )
  } catch (error) {
    // A tenant was removed meanwhile. The caller reads the tenants again.
    if (!isSqlState(error, sqlStates.foreignKeyViolation)) throw error
  }
}

async function raiseLocked(
  tx: Queryable,
  unique: AlertCandidate[],
  sequences: Sequences,
  toNowMs: (postgresMs: number) => number,
): Promise<RaiseOutcome> {
  const known = unique.filter((candidate) => sequences.has(candidate.tenantId))
  const unknownTenants = [
    ...new Set(unique.map((candidate) => candidate.tenantId).filter((id) => !sequences.has(id))),
  ]
  const existing = await findExisting(tx, known)
  const fresh = known.filter(
    (candidate) => !existing.has(`${candidate.tenantId} ${candidate.alertId}`),
  )
  if (fresh.length > 0) {
    const tenantIds = [...new Set(fresh.map((one) => one.tenantId))]
    const { postgresMs, ...tenants } = await findTenants(tx, tenantIds)
    const alerts = toNewAlerts(fresh, sequences, tenants.lastMs, toNowMs(postgresMs))
    await insertAlerts(tx, alerts, await findCases(tx, alerts, tenants))
  }
  return {
    raised: fresh.map(({ tenantId, alertId }) => ({
      tenantId,
      alertId,
      deliveryId: toDeliveryId(alertId),
    })),
    existing: existing.size,
    unknownTenants,
  }
}

// A separate statement after the lock: under READ COMMITTED its snapshot has everything that
// earlier holders of the lock committed.
async function findExisting(
  tx: Queryable,
  candidates: readonly AlertCandidate[],
): Promise<Set<string>> {
  const found = await tx.query<{ tenant_id: string; alert_id: string }>({
    name: 'raise-find-existing',
    text: `select tenant_id, alert_id
           from unnest($1::text[], $2::text[]) as wanted (tenant_id, alert_id)
           join alerts using (tenant_id, alert_id)`,
    values: [
      candidates.map((candidate) => candidate.tenantId),
      candidates.map((candidate) => candidate.alertId),
    ],
  })
  return new Set(found.rows.map((row) => `${row.tenant_id} ${row.alert_id}`))
}

/** What a raise reads of tenants. */
type RaisingTenants = {
  /** The date of the newest alert of each. */
  lastMs: Map<string, number>
  rules: Map<string, CaseRules>
  /** Those whose analysts corrected phones. */
  corrected: Set<string>
}

/** @returns the tenants, and the present time */
async function findTenants(
  tx: Queryable,
  tenantIds: string[],
): Promise<RaisingTenants & { postgresMs: number }> {
  type Row = CaseRulesRow & { tenant_id: string; ms: number | null; now_ms: number }
  const found = await tx.query<Row & { corrected: boolean }>({
    name: 'raise-find-tenants',
    text: `select tenant_id, (extract(epoch from created_at) * 1000)::float8 as ms,
             (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms, ${caseRulesColumns},
             exists (select from phone_corrections as c where c.tenant_id = wanted.tenant_id)
               as corrected
           from unnest($1::text[]) as wanted (tenant_id)
           left join case_rules using (tenant_id)
           left join lateral (
             select created_at from alerts where alerts.tenant_id = wanted.tenant_id
             order by created_at desc limit 1
           ) as newest on true`,
    values: [tenantIds],
  })
  const dated = found.rows.flatMap(({ tenant_id: tenantId, ms }) =>
    ms === null ? [] : [[tenantId, ms] as const],
  )
  return {
    lastMs: new Map(dated),
    rules: new Map(found.rows.map((row) => [row.tenant_id, toCaseRules(row)])),
    corrected: new Set(found.rows.filter((row) => row.corrected).map((row) => row.tenant_id)),
    postgresMs: found.rows[0]!.now_ms,
  }
}

/** The case of each alert, and what the cases gain. */
async function findCases(
  tx: Queryable,
  alerts: NewAlert[],
  { rules, corrected }: Pick<RaisingTenants, 'rules' | 'corrected'>,
) {
  const rulesOf = (tenantId: string) => rules.get(tenantId)!
  const installs = alerts
    .map(({ candidate }) => candidate)
    .filter(({ tenantId }) => corrected.has(tenantId) && rulesOf(tenantId).groupBy === 'phone')
  const phones = installs.length === 0 ? null : await findCorrectedPhones(tx, installs)
  const dated = alerts.map(({ candidate, row }) => ({
    candidate,
    createdAtMs: row.created_at.getTime(),
    correctedPhoneId: phones?.get(`${candidate.tenantId} ${candidate.deviceId}`),
  }))
  const subjects = dated.map((alert) => toRaisedSubject(alert, rulesOf(alert.candidate.tenantId)))
  const found = await findPresentCases(tx, subjects)
  return raiseIntoCases(dated, { rulesOf, found, newCaseId })
}

/** An alert to insert, with its place in the bytes that hold the JSON of all. */
type NewAlert = {
  candidate: AlertCandidate
  row: ReturnType<typeof toAlertRow>
  reasons: Buffer
  body: Buffer
  jsonAt: number
}

/**
 * Numbers and dates the alerts. They are at least a millisecond later than all earlier alerts of
 * the tenant, whatever the clock does. So the order by date is that of `seq`, and a new alert never
 * appears in the middle of a list that a client is paging through.
 */
function toNewAlerts(
  fresh: AlertCandidate[],
  sequences: Sequences,
  lastMs: Map<string, number>,
  nowMs: number,
): NewAlert[] {
  const seqs = new Map(sequences)
  // SQL counts bytes from 1.
  let end = 1
  return fresh.map((candidate) => {
    const seq = (seqs.get(candidate.tenantId) ?? 0) + 1
    seqs.set(candidate.tenantId, seq)
    const last = lastMs.get(candidate.tenantId) ?? Number.NEGATIVE_INFINITY
    const createdAt = new Date(Math.max(Math.floor(nowMs), last + 1))
    const row = toAlertRow(candidate, { seq, createdAt })
    const reasons = Buffer.from(JSON.stringify(row.reasons))
    const body = Buffer.from(JSON.stringify(toAlert({ ...row, ...unchanged })))
    const jsonAt = end
    end += reasons.length + body.length
    return { candidate, row, reasons, body, jsonAt }
  })
}

/** The columns of `alerts` with their types, but for the reasons, which are in the JSON. */
const alertTypes: Record<Exclude<keyof NewAlert['row'], 'reasons'>, string> = {
  tenant_id: 'text',
  alert_id: 'text',
  event_id: 'text',
  seq: 'bigint',
  device_id: 'text',
  session_id: 'text',
  user_id: 'text',
  action: 'text',
  risk_score: 'integer',
  rasp_score: 'integer',
  policy_version: 'integer',
  disposition: 'text',
  platform: 'text',
  sdk_version: 'text',
  app_version: 'text',
  device_model: 'text',
  connection_network: 'cidr',
  connection_country: 'text',
  connection_asn: 'bigint',
  connection_organization: 'text',
  connection_kinds: 'jsonb',
  phone_id: 'text',
  phone_confidence: 'real',
  created_at: 'timestamptz',
}
const insertedColumns = Object.keys(alertTypes) as (keyof typeof alertTypes)[]

/** Arrays of arrays have one length in SQL, so a list in a row is JSON. */
const toValue = (value: unknown) => (Array.isArray(value) ? JSON.stringify(value) : value)
const selectedColumns = insertedColumns.map((column) =>
  alertTypes[column] === 'jsonb'
    ? `case when ${column} is not null then array(select jsonb_array_elements_text(${column})) end`
    : column,
)

const columns: RowColumn<NewAlert & { caseId: string }>[] = [
  ...insertedColumns.map((column) => ({
    column,
    type: alertTypes[column],
    of: ({ row }: NewAlert) => toValue(row[column]),
  })),
  { column: 'case_id', type: 'text', of: ({ caseId }) => caseId },
  { column: 'delivery_id', type: 'text', of: ({ row }) => toDeliveryId(row.alert_id) },
  { column: 'traceparent', type: 'text', of: ({ candidate }) => candidate.traceparent ?? null },
  { column: 'json_at', type: 'integer', of: ({ jsonAt }) => jsonAt },
  { column: 'reasons_bytes', type: 'integer', of: ({ reasons }) => reasons.length },
  { column: 'body_bytes', type: 'integer', of: ({ body }) => body.length },
]

/**
 * All writes in one statement, under the lock of the sequence. The JSON of all alerts is one value
 * of bytes, each alert's reasons followed by its body: items of an array would be escaped and
 * unescaped character by character.
 */
const insertAlertsSql = `
with raised as (
  select * from ${toUnnest(columns, 2)}
), raised_cases as (
  select * from ${toUnnest(caseColumns, 2 + columns.length)}
), inserted as (
  insert into alerts (${insertedColumns.join(', ')}, case_id, reasons)
  select ${selectedColumns.join(', ')}, case_id,
    convert_from(substring($1::bytea from json_at for reasons_bytes), 'UTF8')::jsonb
  from raised
), delivered as (
  insert into deliveries (tenant_id, delivery_id, alert_id, body, traceparent)
  select tenant_id, delivery_id, alert_id,
    substring($1::bytea from json_at + reasons_bytes for body_bytes), traceparent
  from raised
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select tenant_id, (created_at at time zone 'UTC')::date as day, disposition, action, count(*)
  from raised group by 1, 2, 3, 4
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), counted_by_hour as (
  insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
  select tenant_id, date_bin('1 hour', created_at, 'epoch'), disposition, action, count(*)
  from raised group by 1, 2, 3, 4
  on conflict (tenant_id, hour, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), ${raiseCasesSql('raised_cases')}
update alert_sequences as sequences set last_seq = newest.seq, case_seq = sequences.case_seq + 1
from (select tenant_id, max(seq) as seq from raised group by tenant_id) as newest
where sequences.tenant_id = newest.tenant_id`

async function insertAlerts(
  tx: Queryable,
  alerts: NewAlert[],
  { caseIds, cases }: ReturnType<typeof raiseIntoCases>,
): Promise<void> {
  const json = Buffer.concat(alerts.flatMap(({ reasons, body }) => [reasons, body]))
  const rows = alerts.map((alert, at) => ({ ...alert, caseId: caseIds[at]! }))
  const values = [json, ...toArrays(columns, rows), ...toArrays(caseColumns, cases)]
  await tx.query({ name: 'raise-insert', text: insertAlertsSql, values })
}
