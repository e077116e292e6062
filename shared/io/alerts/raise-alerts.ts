/**
 * Raises alerts: each once, however often and by whichever scorer it is raised, numbered without a
 * gap. Alerts, deliveries and counters are written in one transaction, under the locks of the
 * tenants' sequences (alert-lock.ts).
 */
import {
  type Alert,
  type AlertCandidate,
  initialDisposition,
  toAlert,
} from '#shared/core/alerts/alert.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import {
  isSqlState,
  type Queryable,
  type Session,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { lockSequences, type Sequences } from './alert-lock.ts'

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
    const { lastMs, postgresMs } = await findLastCreated(tx, tenantIds)
    await insertAlerts(tx, toRows(fresh, sequences, lastMs, toNowMs(postgresMs)))
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

/** @returns the date of each tenant's newest alert, and the present time */
async function findLastCreated(
  tx: Queryable,
  tenantIds: string[],
): Promise<{ lastMs: Map<string, number>; postgresMs: number }> {
  const found = await tx.query<{ tenant_id: string; ms: number | null; now_ms: number }>({
    name: 'raise-find-last-created',
    text: `select tenant_id, (extract(epoch from created_at) * 1000)::float8 as ms,
             (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms
           from unnest($1::text[]) as wanted (tenant_id)
           left join lateral (
             select created_at from alerts where alerts.tenant_id = wanted.tenant_id
             order by created_at desc limit 1
           ) as newest on true`,
    values: [tenantIds],
  })
  const dated = found.rows.flatMap(({ tenant_id: tenantId, ms }) =>
    ms === null ? [] : [[tenantId, ms] as const],
  )
  return { lastMs: new Map(dated), postgresMs: found.rows[0]!.now_ms }
}

type AlertRow = { candidate: AlertCandidate; seq: number; createdAt: string; alert: Alert }

/**
 * Numbers and dates the alerts. They are at least a millisecond later than all earlier alerts of
 * the tenant, whatever the clock does. So the order by date is that of `seq`, and a new alert never
 * appears in the middle of a list that a client is paging through.
 */
function toRows(
  fresh: AlertCandidate[],
  sequences: Sequences,
  lastMs: Map<string, number>,
  nowMs: number,
): AlertRow[] {
  const seqs = new Map(sequences)
  return fresh.map((candidate) => {
    const seq = (seqs.get(candidate.tenantId) ?? 0) + 1
    seqs.set(candidate.tenantId, seq)
    const last = lastMs.get(candidate.tenantId) ?? Number.NEGATIVE_INFINITY
    const createdAt = new Date(Math.max(Math.floor(nowMs), last + 1))
    const more = { seq, disposition: initialDisposition, createdAt }
    return { candidate, seq, createdAt: createdAt.toISOString(), alert: toAlert(candidate, more) }
  })
}

/**
 * All writes in one statement, under the lock of the sequence. The JSON of all alerts is one value
 * of bytes, each alert's reasons followed by its body: items of an array would be escaped and
 * unescaped character by character.
 */
const insertAlertsSql = `
with raised as (
  select *, created_at_text::timestamptz(3) as created_at
  from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::integer[], $10::integer[], $11::integer[], $12::text[], $13::text[],
    $14::integer[], $15::integer[], $16::integer[], $19::text[])
  as rows (tenant_id, alert_id, seq, device_id, session_id, user_id, event_id,
    action, risk_score, rasp_score, policy_version, created_at_text, delivery_id,
    json_at, reasons_bytes, body_bytes, traceparent)
), inserted as (
  insert into alerts (tenant_id, alert_id, seq, device_id, session_id, user_id, event_id, action,
    risk_score, rasp_score, reasons, policy_version, disposition, created_at)
  select tenant_id, alert_id, seq, device_id, session_id, user_id, event_id, action,
    risk_score, rasp_score,
    convert_from(substring($17::bytea from json_at for reasons_bytes), 'UTF8')::jsonb,
    policy_version, $18, created_at
  from raised
), delivered as (
  insert into deliveries (tenant_id, delivery_id, alert_id, body, traceparent)
  select tenant_id, delivery_id, alert_id,
    substring($17::bytea from json_at + reasons_bytes for body_bytes), traceparent
  from raised
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select tenant_id, (created_at at time zone 'UTC')::date as day, $18, action, count(*)
  from raised group by 1, 2, 4
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), counted_by_hour as (
  insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
  select tenant_id, date_bin('1 hour', created_at, 'epoch'), $18, action, count(*)
  from raised group by 1, 2, 4
  on conflict (tenant_id, hour, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
)
update alert_sequences as sequences set last_seq = newest.seq
from (select tenant_id, max(seq) as seq from raised group by tenant_id) as newest
where sequences.tenant_id = newest.tenant_id`

async function insertAlerts(tx: Queryable, rows: AlertRow[]): Promise<void> {
  const column = <T>(of: (row: AlertRow) => T): T[] => rows.map(of)
  const json = rows.map(({ candidate, alert }) => ({
    reasons: Buffer.from(JSON.stringify(candidate.reasons)),
    body: Buffer.from(JSON.stringify(alert)),
  }))
  let end = 0
  // SQL counts bytes from 1.
  const jsonAt = json.map(({ reasons, body }) => {
    const at = end + 1
    end += reasons.length + body.length
    return at
  })
  await tx.query({
    name: 'raise-insert',
    text: insertAlertsSql,
    values: [
      column(({ candidate }) => candidate.tenantId),
      column(({ candidate }) => candidate.alertId),
      column(({ seq }) => seq),
      column(({ candidate }) => candidate.deviceId),
      column(({ candidate }) => candidate.sessionId),
      column(({ candidate }) => candidate.userId),
      column(({ candidate }) => candidate.eventId),
      column(({ candidate }) => candidate.action),
      column(({ candidate }) => candidate.riskScore),
      column(({ candidate }) => candidate.raspScore),
      column(({ candidate }) => candidate.policyVersion),
      column(({ createdAt }) => createdAt),
      column(({ candidate }) => toDeliveryId(candidate.alertId)),
      jsonAt,
      json.map(({ reasons }) => reasons.length),
      json.map(({ body }) => body.length),
      Buffer.concat(json.flatMap(({ reasons, body }) => [reasons, body])),
      initialDisposition,
      column(({ candidate }) => candidate.traceparent ?? null),
    ],
  })
}
