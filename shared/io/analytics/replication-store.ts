/**
 * Finds and reads the rows in Postgres that the replicas in ClickHouse do not have yet. A row is
 * new when the current snapshot sees its transaction and the snapshot of the last round does not,
 * however late the transaction commits. New alerts are found by `seq`, which rises without a gap in
 * commit order. Replicating a row again changes nothing.
 */
import { operatorIdOf } from '#shared/io/alerts/alert-columns.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'

/** How far replication is. */
export type ReplicationState = {
  /** The last round that began; its rows replace those of earlier rounds. */
  round: number
  /** The last round whose rows are all in ClickHouse. */
  completed: number
  /** Whether the snapshot is of this Postgres cluster, and every round copied all columns. */
  own: boolean
  /** The replicated snapshot, as Postgres writes it; null when nothing is replicated. */
  copied: string | null
  /** The same of corrections of phones. */
  corrected: string | null
}

/** The snapshot that a round reads, and its time. */
type ReplicationSnapshot = { snapshot: string; atMs: number }

export type AlertKey = { tenantId: string; alertId: string }
export type TenantSeq = { tenantId: string; seq: number }

export type AlertReplicaRow = { tenant_id: string; alert_id: string; seq: number } & Record<
  string,
  unknown
>
export type DeliveryReplicaRow = { tenant_id: string; delivery_id: string } & Record<
  string,
  unknown
>
export type LabelReplicaRow = { tenant_id: string; label_id: string } & Record<string, unknown>
export type ReplicaRemoval = {
  kind: 'alert' | 'delivery' | 'label'
  tenantId: string
  createdAt: string
  id: string
}

/** The lease of a replication round. */
export const replicationLease = 'replication'

const clusterSql = '(select system_identifier::text from pg_control_system())'

export async function readReplicationState(db: Queryable): Promise<ReplicationState> {
  const { rows } = await db.query<ReplicationState>(
    `select round, completed_round as completed, replicated_snapshot::text as copied,
       corrections_snapshot::text as corrected,
       ${clusterSql} is not distinct from cluster_id and whole_round = completed_round
         and labelled_round = completed_round as own
     from replication_state`,
  )
  return rows[0]!
}

/**
 * Begins a round. Call it before reading.
 * @param above the last round in ClickHouse; the new one is higher
 */
export async function beginRound(db: Queryable, above: number): Promise<number> {
  const { rows } = await db.query<{ round: number }>(
    'update replication_state set round = greatest(round, $1) + 1 returning round',
    [above],
  )
  return rows[0]!.round
}

/** Resets replication: the next round copies everything. */
export async function forgetCopied(db: Session): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(
      'update replication_state set replicated_snapshot = null, corrections_snapshot = null',
    )
    await tx.query('delete from replication_alert_seqs')
  })
}

/** Records a completed round and removes the change records that it used. */
export async function recordCopied(
  db: Session,
  { snapshot, round, seqs }: { snapshot: string; round: number; seqs: readonly TenantSeq[] },
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(
      `insert into replication_alert_seqs (tenant_id, seq)
       select tenant_id, seq from unnest($1::text[], $2::bigint[]) as copied (tenant_id, seq)
       where exists (select from tenants where tenants.tenant_id = copied.tenant_id)
       order by tenant_id
       on conflict (tenant_id) do update set seq = excluded.seq`,
      [seqs.map((one) => one.tenantId), seqs.map((one) => one.seq)],
    )
    for (const table of [
      'replication_changes',
      'replication_removals',
      'replication_removed_months',
    ]) {
      await tx.query(
        `delete from ${table} where written_by_xid < pg_snapshot_xmin($1::pg_snapshot)`,
        [snapshot],
      )
    }
    await tx.query(
      `update replication_state set replicated_snapshot = $1::pg_snapshot,
         corrections_snapshot = $1::pg_snapshot, completed_round = $2,
         whole_round = $2, labelled_round = $2, cluster_id = ${clusterSql}`,
      [snapshot, round],
    )
  })
}

/** Makes a transaction read one snapshot. Call it first. */
export async function fixSnapshot(tx: Queryable): Promise<ReplicationSnapshot> {
  await tx.query('set transaction isolation level repeatable read, read only')
  const { rows } = await tx.query<{ snapshot: string; at_ms: number }>(
    `select pg_current_snapshot()::text as snapshot,
       floor(extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms`,
  )
  return { snapshot: rows[0]!.snapshot, atMs: rows[0]!.at_ms }
}

/**
 * SQL: the transaction id in a column is not seen by the snapshot `$1`. Ids from a dump of another
 * cluster may lie in the future; those rows are replicated with the first full round.
 */
export const unseen = (column: string) =>
  `${column} >= pg_snapshot_xmin($1::pg_snapshot)
   and ${column} < pg_snapshot_xmax(pg_current_snapshot())
   and not pg_visible_in_snapshot(${column}, $1::pg_snapshot)`

/** Tenants with alerts that are not replicated, and the last replicated `seq` of each. */
export async function findTenantsBehind(
  tx: Queryable,
): Promise<{ tenantId: string; copied: number; last: number }[]> {
  const { rows } = await tx.query<{ tenant_id: string; copied: number; last_seq: number }>(
    `select s.tenant_id, coalesce(m.seq, 0) as copied, s.last_seq
     from alert_sequences as s left join replication_alert_seqs as m using (tenant_id)
     where s.last_seq > coalesce(m.seq, 0) order by s.tenant_id`,
  )
  return rows.map((row) => ({ tenantId: row.tenant_id, copied: row.copied, last: row.last_seq }))
}

const changesOfAlerts = ['alert_dispositions', 'alert_assignments', 'alert_notes']

/** Alerts whose disposition, assignee or notes were changed since a snapshot. */
export async function findChangedAlerts(tx: Queryable, copied: string): Promise<AlertKey[]> {
  const { rows } = await tx.query<{ tenant_id: string; alert_id: string }>(
    changesOfAlerts
      .map((table) => `select tenant_id, alert_id from ${table} where ${unseen('written_by_xid')}`)
      .join(' union '),
    [copied],
  )
  return rows.map((row) => ({ tenantId: row.tenant_id, alertId: row.alert_id }))
}

/** Deliveries that were attempted, ended, replayed or created without an alert since a snapshot. */
export async function findChangedDeliveries(tx: Queryable, copied: string): Promise<string[]> {
  const { rows } = await tx.query<{ delivery_id: string }>(
    `select delivery_id from delivery_attempts where ${unseen('written_by_xid')}
     union select delivery_id from replication_changes where ${unseen('written_by_xid')}`,
    [copied],
  )
  return rows.map((row) => row.delivery_id)
}

/** Rows that were removed since a snapshot and not created again. */
export async function findRemovals(tx: Queryable, copied: string): Promise<ReplicaRemoval[]> {
  const { rows } = await tx.query<{
    kind: ReplicaRemoval['kind']
    tenant_id: string
    created_at: string
    id: string
  }>(
    `select kind, tenant_id, id, ${toInstant('created_at')} as created_at
     from replication_removals as r
     where ${unseen('written_by_xid')}
       and case kind
         when 'alert' then not exists (
           select from alerts as a where a.tenant_id = r.tenant_id and a.alert_id = r.id
             and a.created_at = r.created_at)
         when 'label' then not exists (
           select from labels as l where l.label_id = r.id)
         else not exists (
           select from deliveries as d where d.delivery_id = r.id
             and d.created_at = r.created_at) end`,
    [copied],
  )
  return rows.map((row) => ({
    kind: row.kind,
    tenantId: row.tenant_id,
    createdAt: row.created_at,
    id: row.id,
  }))
}

/**
 * Months of deliveries that were dropped since a snapshot.
 * @returns the first day of each, as 2026-01-01
 */
export async function findRemovedMonths(tx: Queryable, copied: string): Promise<string[]> {
  const { rows } = await tx.query<{ month: string }>(
    `select distinct month::text from replication_removed_months
     where ${unseen('written_by_xid')} order by 1`,
    [copied],
  )
  return rows.map((row) => row.month)
}

/** SQL: a time in ms, rounded down, in the format of ClickHouse. */
export const toInstant = (column: string) =>
  `to_char(date_trunc('milliseconds', ${column}) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')`

const alertColumns = `
  a.tenant_id, a.alert_id, a.seq, ${toInstant('a.created_at')} as created_at, a.device_id,
  a.session_id, coalesce(a.user_id, '') as user_id, a.event_id, a.action, a.risk_score,
  a.rasp_score, a.policy_version, a.disposition,
  coalesce(${operatorIdOf('a.assignee')}, '') as assignee,
  ${toInstant('a.changed_at')} as changed_at,
  coalesce(a.connection_network::text, '') as connection_network,
  coalesce(a.connection_country, '') as connection_country,
  coalesce(a.connection_asn, 0) as connection_asn,
  coalesce(a.connection_organization, '') as connection_organization,
  coalesce(a.connection_kinds, '{}') as connection_kinds,
  coalesce((select json_agg(r->>'code') from jsonb_array_elements(a.reasons) as r), '[]')
    as reason_codes,
  coalesce((select json_agg((r->>'weight')::float8) from jsonb_array_elements(a.reasons) as r),
    '[]') as reason_weights,
  coalesce((select json_agg(coalesce((r->'evidence')::text, '{}'))
    from jsonb_array_elements(a.reasons) as r), '[]') as reason_evidence,
  d.disposition_at, d.disposition_from, d.disposition_to, d.disposition_actor, d.disposition_note`

const dispositionsOfAlert = `
  cross join lateral (
    select
      coalesce(json_agg(${toInstant('h.at')} order by h.disposition_id), '[]') as disposition_at,
      coalesce(json_agg(h.from_disposition order by h.disposition_id), '[]') as disposition_from,
      coalesce(json_agg(h.to_disposition order by h.disposition_id), '[]') as disposition_to,
      coalesce(json_agg(h.actor order by h.disposition_id), '[]') as disposition_actor,
      coalesce(json_agg(coalesce(h.note, '') order by h.disposition_id), '[]') as disposition_note
    from alert_dispositions as h where h.tenant_id = a.tenant_id and h.alert_id = a.alert_id
  ) as d`

/** A tenant's alerts after a `seq`, ascending. */
export async function readAlertsAfter(
  tx: Queryable,
  { tenantId, seq }: TenantSeq,
  most: number,
): Promise<AlertReplicaRow[]> {
  const { rows } = await tx.query<AlertReplicaRow>(
    `select ${alertColumns} from alerts as a ${dispositionsOfAlert}
     where a.tenant_id = $1 and a.seq > $2 order by a.seq limit $3`,
    [tenantId, seq, most],
  )
  return rows
}

/** These alerts, without those that no longer exist. */
export async function readAlerts(
  tx: Queryable,
  keys: readonly AlertKey[],
): Promise<AlertReplicaRow[]> {
  const { rows } = await tx.query<AlertReplicaRow>(
    `select ${alertColumns}
     from unnest($1::text[], $2::text[]) as wanted (tenant_id, alert_id)
     join alerts as a using (tenant_id, alert_id) ${dispositionsOfAlert}`,
    [keys.map((key) => key.tenantId), keys.map((key) => key.alertId)],
  )
  return rows
}

const deliverySql = (from: string) => `
  select d.tenant_id, d.delivery_id, coalesce(d.alert_id, '') as alert_id,
    ${toInstant('d.created_at')} as created_at, coalesce(a.device_id, '') as device_id,
    coalesce(a.user_id, '') as user_id, coalesce(a.event_id, '') as event_id, d.event,
    d.state,
    coalesce(d.reason, '') as reason, ${toInstant('d.ended_at')} as ended_at,
    tried.attempt_at, tried.attempt_duration_ms, tried.attempt_status, tried.attempt_error_kind
  from ${from}
  left join alerts as a on a.tenant_id = d.tenant_id and a.alert_id = d.alert_id
  cross join lateral (
    select
      coalesce(json_agg(${toInstant('t.at')} order by t.attempt), '[]') as attempt_at,
      coalesce(json_agg(greatest(t.duration_ms, 0) order by t.attempt), '[]')
        as attempt_duration_ms,
      coalesce(json_agg(t.status order by t.attempt), '[]') as attempt_status,
      coalesce(json_agg(coalesce(t.error_kind, '') order by t.attempt), '[]')
        as attempt_error_kind
    from delivery_attempts as t
    where t.delivery_id = d.delivery_id and t.delivery_created_at = d.created_at
  ) as tried`

/** The deliveries of these alerts. */
export async function readDeliveriesOfAlerts(
  tx: Queryable,
  keys: readonly AlertKey[],
): Promise<DeliveryReplicaRow[]> {
  const from = `unnest($1::text[], $2::text[]) as wanted (tenant_id, alert_id)
    join deliveries as d using (tenant_id, alert_id)`
  const { rows } = await tx.query<DeliveryReplicaRow>(deliverySql(from), [
    keys.map((key) => key.tenantId),
    keys.map((key) => key.alertId),
  ])
  return rows
}

/** These deliveries, without those that no longer exist. */
export async function readDeliveries(
  tx: Queryable,
  ids: readonly string[],
): Promise<DeliveryReplicaRow[]> {
  const from = 'unnest($1::text[]) as wanted (delivery_id) join deliveries as d using (delivery_id)'
  const { rows } = await tx.query<DeliveryReplicaRow>(deliverySql(from), [ids])
  return rows
}

/** Deliveries after an id, in order of their ids, for a full round. */
export async function readDeliveriesAfter(
  tx: Queryable,
  after: string,
  most: number,
): Promise<DeliveryReplicaRow[]> {
  const from = `(select * from deliveries where delivery_id > $1
    order by delivery_id limit $2) as d`
  const { rows } = await tx.query<DeliveryReplicaRow>(
    `${deliverySql(from)} order by d.delivery_id`,
    [after, most],
  )
  return rows
}

const labelColumns = `
  l.tenant_id, l.label_id, l.seq, ${toInstant('l.created_at')} as created_at, l.subject_kind,
  l.subject_id, l.label, ${toInstant('l.occurred_at')} as occurred_at, l.covered_days,
  coalesce(l.amount, 0)::text as amount, coalesce(l.currency, '') as currency, l.external_id,
  coalesce(l.note, '') as note, coalesce(l.code_means, '') as code_means, coalesce(${operatorIdOf('l.actor')}, l.actor) as actor`

/** Labels that were added since a snapshot. No row of a label ever changes. */
export async function findNewLabels(tx: Queryable, copied: string): Promise<string[]> {
  const { rows } = await tx.query<{ label_id: string }>(
    `select label_id from labels where ${unseen('written_by_xid')}`,
    [copied],
  )
  return rows.map((row) => row.label_id)
}

/** These labels. */
export async function readLabels(
  tx: Queryable,
  ids: readonly string[],
): Promise<LabelReplicaRow[]> {
  const { rows } = await tx.query<LabelReplicaRow>(
    `select ${labelColumns} from unnest($1::text[]) as wanted (label_id)
     join labels as l using (label_id)`,
    [ids],
  )
  return rows
}

/** Labels after an id, in order of their ids, for a full round. */
export async function readLabelsAfter(
  tx: Queryable,
  after: string,
  most: number,
): Promise<LabelReplicaRow[]> {
  const { rows } = await tx.query<LabelReplicaRow>(
    `select ${labelColumns} from labels as l where l.label_id > $1
     order by l.label_id limit $2`,
    [after, most],
  )
  return rows
}
