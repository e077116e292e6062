/**
 * The privileges of each process in PostgreSQL and ClickHouse, table by table. Everything else is
 * refused: secrets to processes that do not sign, alerts to those that do not raise them, the
 * schema to all but `migrate`. The scorer, the api and delivery write the columns that their SQL
 * names and no other: a test compares both.
 */

/**
 * Privileges per table, with columns where they are limited to some. A name with parentheses is a
 * function.
 */
export type TablePrivileges = Readonly<Record<string, readonly string[]>>

const read = ['select'] as const
const change = ['select', 'insert', 'update', 'delete'] as const
/** Of ClickHouse, which has no updates to refuse. */
const add = ['select', 'insert'] as const

/** Columns that a statement may fill, and change. */
const insert = (...columns: string[]) => `insert(${columns.join(', ')})`
const update = (...columns: string[]) => `update(${columns.join(', ')})`

const countersOf = (time: 'day' | 'hour'): readonly string[] => [
  'select',
  insert('tenant_id', time, 'disposition', 'decision', 'alert_count'),
  update('alert_count'),
]

/** Of an alert as it is raised. */
const raisedColumns = [
  'tenant_id',
  'alert_id',
  'event_id',
  'seq',
  'device_id',
  'session_id',
  'user_id',
  'action',
  'risk_score',
  'rasp_score',
  'policy_version',
  'disposition',
  'platform',
  'sdk_version',
  'app_version',
  'device_model',
  'connection_network',
  'connection_country',
  'connection_asn',
  'connection_organization',
  'connection_kinds',
  'phone_id',
  'phone_confidence',
  'created_at',
  'case_id',
  'reasons',
] as const

/** What a case counts of its alerts. */
const caseCounts = [
  ...['alert_count', 'open_count', 'risk_score', 'action', 'flags', 'first_alert_at'],
  ...['latest_alert_at', 'due_at', 'block_due_hours', 'review_due_hours'],
] as const

const labelColumns = [
  ...['label_id', 'subject_kind', 'subject_id', 'label', 'occurred_at', 'covered_days'],
  ...['amount', 'currency', 'external_id', 'note', 'code_means'],
] as const

/** Written by a trigger of `deliveries`. */
const recordedChange = ['select', insert('delivery_id')] as const

/** An entry's id, time and writer are the database's. */
const writeAudit = 'insert(actor, tenant_id, action, before, after)'

/** For readiness: whether the schema is that of the release. */
const schema: TablePrivileges = { schema_migrations: read }
const policies: TablePrivileges = { policy_documents: read, tenant_policies: read }

/** Which phone an install is on, and not who says so and why. */
const correctedPhones = [
  'select(correction_id, tenant_id, device_id, from_phone_id, phone_id, at, undone_at)',
] as const

export const postgresPrivileges = {
  scorer: {
    ...schema,
    ...policies,
    tenants: read,
    // Never how an alert was judged, and by whom.
    alerts: ['select', insert(...raisedColumns)],
    alert_sequences: ['select', insert('tenant_id'), update('last_seq', 'case_seq')],
    alert_counts_by_day: countersOf('day'),
    alert_counts_by_hour: countersOf('hour'),
    // The cases that alerts fall into: what they count, and never who works on them or judged them.
    // What else changes cases of alerts is triggers of the owner.
    cases: [
      'select',
      insert('case_id', 'tenant_id', 'subject_kind', 'subject_id', 'closed_at', ...caseCounts),
      update(...caseCounts, 'closed_at', 'version'),
    ],
    case_rules: read,
    case_events: [insert('case_id', 'kind', 'actor', 'at')],
    case_changes: [insert('tenant_id', 'seq', 'case_ids')],
    deliveries: ['select', insert('tenant_id', 'delivery_id', 'alert_id', 'body', 'traceparent')],
    replication_changes: recordedChange,
    shadow_policies: read,
    shadow_policy_changes: read,
    stream_incarnations: [
      'select',
      insert('stream', 'number', 'created_ms', 'first_sequence', 'base_ms'),
    ],
    // What a scorer remembers of its writes ends with the next erasure.
    erasures: ['select(ended_at)'],
    // The phones of installs: how they are told apart, corrected, and denied.
    identity_parameters: read,
    phone_corrections: correctedPhones,
    list_entries: ['select(tenant_id, list, kind, id, created_at, expires_at)'],
  },
  api: {
    ...schema,
    ...policies,
    tenants: read,
    api_keys: ['select', 'update(last_used_at)'],
    // Dispositions, with a key that has the scope.
    alerts: ['select', 'update(disposition, changed_at)'],
    // To lock it. Without a right to change a column there is no lock.
    alert_sequences: ['select', update('case_seq')],
    alert_counts_by_day: countersOf('day'),
    alert_counts_by_hour: countersOf('hour'),
    alert_dispositions: [
      'select',
      insert(
        ...['tenant_id', 'alert_id', 'from_disposition', 'to_disposition', 'actor', 'note', 'at'],
        // Null in what a key does; the statement names them.
        ...['job_id', 'undoes'],
      ),
    ],
    alert_assignments: read,
    alert_notes: read,
    // Whether a key's change needs two persons.
    four_eyes: read,
    // Emails become ids that say nothing of a person.
    operators: ['select(operator_id, email)'],
    // An update of an alert, for tenants that asked for it. A trigger refuses every other delivery.
    webhooks: ['select(tenant_id, events)'],
    deliveries: ['insert(tenant_id, delivery_id, alert_id, event, body)'],
    replication_changes: recordedChange,
    idempotent_answers: [
      'select',
      insert('tenant_id', 'actor', 'idempotency_key', 'request_sha256', 'answer'),
      update('request_sha256', 'answer', 'created_at'),
    ],
    // Allow and deny lists, with a key that has the scope.
    list_entries: [
      'select',
      insert(
        'entry_id',
        'tenant_id',
        'list',
        'kind',
        'id',
        'reason',
        'expires_at',
        'created_by',
        'shard',
      ),
      update('reason', 'expires_at', 'created_by', 'created_at'),
      'delete',
    ],
    list_shards: ['select', insert('tenant_id', 'shard'), update('version')],
    connection_lists: ['select', insert('tenant_id'), update('version')],
    phone_corrections: correctedPhones,
    // Labels, with a key that has the scope.
    labels: ['select', insert('tenant_id', 'actor', 'created_at', ...labelColumns)],
    label_totals: ['select', insert('tenant_id', 'labels'), update('labels')],
    label_codes: read,
    // A trigger refuses acts that are another process's, and keys that the tenant does not have.
    audit_log: [writeAudit],
    // What is published. The private halves are in another column.
    verdict_keys: ['select(kid, state, public_jwk, created_at, kept_until)'],
  },
  delivery: {
    ...schema,
    tenants: read,
    // A policy on rows leaves it the webhook secrets.
    tenant_secrets: read,
    // Health, and switching it off. Where it leads is the console's.
    webhooks: [
      'select',
      'update(state, off_reason, changed_at, failing_since, failed_attempts, last_failure, ' +
        'circuit_open_until, failed_probes)',
    ],
    webhook_secret_lease: ['select', update('lease_ms', 'extended_until')],
    // Claims and outcomes. What is sent was written with the alert.
    deliveries: [
      'select',
      'update(state, attempts, due_at, claimed_by, claimed_until, ended_at, reason)',
    ],
    delivery_attempts: [
      'select',
      insert(
        ...['delivery_id', 'delivery_created_at', 'attempt', 'at', 'duration_ms', 'status'],
        ...['error_kind', 'error', 'address', 'answer'],
      ),
    ],
    replication_changes: recordedChange,
    audit_log: [writeAudit],
  },
  console: {
    ...Object.fromEntries(
      [
        ...['tenants', 'tenant_secrets', 'install_roots', 'tenant_apps', 'api_keys'],
        'address_keys',
        ...['policy_documents', 'tenant_policies', 'policy_drafts', 'policy_backtests'],
        ...['four_eyes', 'proposals'],
        ...['rotations', 'webhooks', 'webhook_secret_lease', 'analysts', 'retention_rounds'],
        ...['alerts', 'alert_sequences', 'alert_counts_by_day', 'alert_counts_by_hour'],
        ...['alert_dispositions', 'alert_assignments', 'alert_notes', 'bulk_jobs'],
        ...[
          'erasures',
          'recovered_erasures',
          'deliveries',
          'delivery_attempts',
          'idempotent_answers',
        ],
        ...['list_entries', 'list_shards', 'connection_lists', 'phone_corrections'],
        'identity_parameters',
        ...['labels', 'label_totals', 'label_codes'],
        ...['cases', 'case_rules', 'case_notes', 'case_events', 'case_presence'],
        ...['case_changes', 'saved_views', 'leases'],
        ...[
          'replication_changes',
          'replication_removals',
          'replication_removed_months',
          'replication_state',
          'replication_alert_seqs',
        ],
        ...['shadow_policies', 'shadow_policy_changes', 'verdict_keys'],
        ...['operators', 'operator_sessions', 'operator_recovery_codes', 'operator_invitations'],
        'second_factor_rules',
      ].map((table) => [table, change]),
    ),
    audit_log: ['select', writeAudit],
    audit_retention: read,
    key_form: ['select', 'update'],
    ...schema,
    stream_incarnations: read,
    // The only way to remove audit entries, and only expired ones.
    'remove_expired_audit_entries(integer)': ['execute'],
    // Only the owner can create and drop partitions.
    'create_delivery_months()': ['execute'],
    'drop_expired_delivery_month(text[], timestamptz[])': ['execute'],
  },
} as const satisfies Record<string, TablePrivileges>

const history: TablePrivileges = {
  telemetry: read,
  sessions: read,
  devices: read,
  user_devices: read,
  decisions: read,
  installs: read,
  phone_links: read,
  phone_installs: read,
}
const reconciliation: TablePrivileges = {
  reconciliation_entries: read,
  reconciliation_accepted: read,
  reconciliation_expected_alerts: read,
  reconciliation_watermarks: read,
  reconciliation_cutoffs: read,
  reconciliation_start: read,
  alerts_replica: read,
  deliveries_replica: read,
  replication_rounds: read,
}

/** Tables of the service's database; `analytics.*` are the views, `system.*` the engine's state. */
export const clickhousePrivileges = {
  scorer: {
    ...schema,
    telemetry: add,
    activity: add,
    sdk_baselines: read,
    signal_patterns: add,
    reconciliation_entries: add,
    reconciliation_expected_alerts: add,
    decisions: add,
    shadow_decisions: add,
    installs: add,
    install_keys: add,
    identity_keys: add,
    identity_samples: add,
    phone_links: add,
    phone_installs: add,
    replays: add,
  },
  api: {
    ...schema,
    schema_views: read,
    ...history,
    ...reconciliation,
    'analytics.*': read,
  },
  console: {
    // `system cleanup` wakes the removal of replaced parts, for which an erasure waits.
    '*': ['select', 'insert', 'alter delete', 'alter update', 'optimize', 'system cleanup'],
    'analytics.*': read,
    'system.*': read,
    // The console creates analysts.
    '*.*': ['create user', 'alter user', 'drop user', 'role admin', 'show access'],
  },
} as const satisfies Record<string, TablePrivileges>

/**
 * GRANT statements without a grantee, such as GRANT SELECT ON `device_intelligence`.`sessions`.
 * @param names.databases the service's own; on shards also that of the tables of all shards
 */
export function toClickhouseGrants(
  rights: TablePrivileges,
  names: { databases: readonly string[]; analytics: string },
): string[] {
  const quote = (name: string) => (name === '*' ? name : `\`${name}\``)
  const toPlaces = (table: string): string[] => {
    if (table === '*.*') return [table]
    const [own = '', rest] = table.split('.')
    return rest === undefined
      ? names.databases.map((name) => `\`${name}\`.${quote(own)}`)
      : [`\`${own === 'analytics' ? names.analytics : own}\`.${quote(rest)}`]
  }
  return Object.entries(rights).flatMap(([table, privileges]) =>
    toPlaces(table).map((place) => `GRANT ${privileges.join(', ').toUpperCase()} ON ${place}`),
  )
}

/** The engines of the tables that the migrations create. */
const tableEngines = ['MergeTree', 'ReplacingMergeTree', 'AggregatingMergeTree'] as const

/** ClickHouse checks these for `create or replace`, of a view as well. */
const replace = ['SELECT', 'INSERT', 'CREATE DATABASE', 'CREATE TABLE', 'DROP TABLE'] as const

/**
 * What the user of `migrate` needs on a server, as GRANT statements without a grantee, one for each
 * privilege.
 * @param names.all the database of the tables of all shards; null on one node
 * @param hasReplicas whether the server has tables that copy rows
 */
export function toClickhouseOwnerGrants(
  names: { database: string; all: string | null; analytics: string },
  hasReplicas: boolean,
): string[] {
  const on = (database: string, privileges: readonly string[]) =>
    privileges.map((privilege) => `GRANT ${privilege} ON \`${database}\`.*`)
  const engines = [
    ...tableEngines,
    ...(hasReplicas ? tableEngines.map((engine) => `Replicated${engine}`) : []),
  ]
  return [
    ...on(names.database, ['SELECT', 'INSERT', 'CREATE DATABASE', 'CREATE TABLE']),
    ...on(names.database, ['ALTER ADD COLUMN', ...(hasReplicas ? ['SYSTEM SYNC REPLICA'] : [])]),
    ...on(names.analytics, replace),
    ...(names.all === null
      ? []
      : [...on(names.all, replace), 'GRANT SELECT ON system.clusters', 'GRANT REMOTE ON *.*']),
    ...engines.map((engine) => `GRANT TABLE ENGINE ON ${engine}`),
  ]
}
