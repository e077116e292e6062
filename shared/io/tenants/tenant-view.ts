/** A tenant as operators see it: what is read of it, and in which form it is shown. */
import type { WebhookEvent } from '#shared/core/deliveries/webhook-events.ts'
import type { ClientAddress } from '#shared/core/tenants/client-address.ts'
import type { Environment } from '#shared/core/tenants/credentials.ts'
import type { IngestAnswer } from '#shared/core/tenants/ingest-answer.ts'
import {
  type RetainedKind,
  type RetentionView,
  toRetentionView,
} from '#shared/core/tenants/retention.ts'
import type { WebhookState } from '#shared/io/deliveries/webhook-store.ts'

export type TenantStatus = 'active' | 'suspended'

/** A tenant as operators see it: everything but the secrets. Times are ISO-8601. */
export type TenantView = {
  tenant_id: string
  name: string
  environment: Environment
  status: TenantStatus
  epoch: number
  created_at: string
  webhook_url: string | null
  webhook_state: WebhookState
  webhook_off_reason: string | null
  /** When it was last set, paused, resumed or switched off. */
  webhook_changed_at: string | null
  /** Which events it gets. */
  webhook_events: WebhookEvent[]
  /** Null while deliveries succeed. */
  webhook_health: WebhookHealth | null
  policy_version: number
  policy_hash: string
  ingest_rate: { per_second: number; burst: number } | null
  /** The rate in bytes. */
  ingest_bytes: { per_second: number; burst: number } | null
  /** Share of the telemetry stream that may wait undecided. */
  ingest_share: number | null
  /** The number of its telemetry stream. */
  telemetry_stream: number
  /** What its clients are answered. */
  ingest_answer: IngestAnswer
  /** Which address of a client counts. */
  client_address: ClientAddress
  /** Whether events keep the full address. */
  store_client_address: boolean
  rest_rate: { per_second: number; burst: number } | null
  /** Days of retention. */
  retention: Record<RetainedKind, RetentionView>
  public_api_key: {
    prefix: string
    last4: string
    created_at: string
    last_used_at: string | null
  } | null
  hmac_secret: { last4: string; created_at: string; state: string } | null
  /** Whether telemetry that is signed with the HMAC secret itself is refused. */
  shared_secret_off: boolean
  /** The valid install roots, the one that makes tokens first. */
  install_roots: { epoch: number; state: 'current' | 'next' | 'previous'; created_at: string }[]
  webhook_secret: {
    last4: string
    created_at: string
    /** Until when the secret before signs as well; null when it does not. */
  } | null
}

export type WebhookHealth = {
  /** The first failed attempt since the last success. */
  failing_since: string
  failed_attempts: number
  last_failure: string | null
  /** Set while deliveries are held: when the next probe is sent. */
  held_until: string | null
  failed_probes: number
}

export type ViewRow = Omit<
  TenantView,
  'created_at' | 'ingest_rate' | 'ingest_bytes' | 'rest_rate' | 'retention' | 'webhook_changed_at'
> & {
  webhook_changed_at: Date | null
  event_retention_days: number | null
  alert_retention_days: number | null
  delivery_retention_days: number | null
  created_at: Date
  ingest_rate_per_second: number | null
  ingest_burst: number | null
  ingest_bytes_per_second: number | null
  ingest_bytes_burst: number | null
  rest_rate_per_second: number | null
  rest_burst: number | null
}

// The times inside JSON objects are written by to_char, as Date.toISOString would.
const isoOf = (column: string) =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

export const viewSql = `
select t.tenant_id, t.name, t.environment, t.status, t.epoch, t.created_at, t.policy_version,
  coalesce(p.policy_hash, '') as policy_hash,
  t.ingest_rate_per_second, t.ingest_burst, t.rest_rate_per_second, t.rest_burst,
  t.ingest_bytes_per_second, t.ingest_bytes_burst, t.ingest_share, t.telemetry_stream,
  t.ingest_answer, t.client_address, t.store_client_address,
  t.event_retention_days, t.alert_retention_days, t.delivery_retention_days,
  t.shared_secret_off,
  coalesce((
    select jsonb_agg(jsonb_build_object('epoch', i.epoch, 'state', i.state,
      'created_at', ${isoOf('i.created_at')}) order by i.state <> 'current')
    from install_roots i
    where i.tenant_id = t.tenant_id and i.state <> 'retired'), '[]') as install_roots,
  w.url as webhook_url, coalesce(w.state, 'off') as webhook_state,
  w.off_reason as webhook_off_reason, w.changed_at as webhook_changed_at,
  coalesce(w.events, '{risk.alert}') as webhook_events,
  case when w.failing_since is not null then jsonb_build_object(
    'failing_since', ${isoOf('w.failing_since')}, 'failed_attempts', w.failed_attempts,
    'last_failure', w.last_failure, 'held_until', ${isoOf('w.circuit_open_until')},
    'failed_probes', w.failed_probes) end as webhook_health,
  case when k.key_hash is not null then jsonb_build_object('prefix', k.prefix, 'last4', k.last4,
    'created_at', ${isoOf('k.created_at')}, 'last_used_at', ${isoOf('k.last_used_at')})
  end as public_api_key,
  case when h.secret_id is not null then jsonb_build_object('last4', h.last4,
    'created_at', ${isoOf('h.created_at')}, 'state', h.state) end as hmac_secret,
  case when s.secret_id is not null then jsonb_build_object('last4', s.last4,
    'created_at', ${isoOf('s.created_at')}) end as webhook_secret
from tenants t
left join tenant_policies p on p.tenant_id = t.tenant_id and p.version = t.policy_version
left join webhooks w on w.tenant_id = t.tenant_id
left join api_keys k
  on k.tenant_id = t.tenant_id and k.state = 'active' and k.name is null
left join tenant_secrets h
  on h.tenant_id = t.tenant_id and h.kind = 'hmac' and h.state in ('active', 'off')
left join tenant_secrets s
  on s.tenant_id = t.tenant_id and s.kind = 'webhook' and s.state = 'active'`

export function toView(row: ViewRow): TenantView {
  return {
    tenant_id: row.tenant_id,
    name: row.name,
    environment: row.environment,
    status: row.status,
    epoch: row.epoch,
    created_at: row.created_at.toISOString(),
    webhook_url: row.webhook_url,
    webhook_state: row.webhook_state,
    webhook_off_reason: row.webhook_off_reason,
    webhook_changed_at: row.webhook_changed_at?.toISOString() ?? null,
    webhook_events: row.webhook_events,
    webhook_health: row.webhook_health,
    policy_version: row.policy_version,
    policy_hash: row.policy_hash,
    ingest_rate: toViewRate(row.ingest_rate_per_second, row.ingest_burst),
    ingest_bytes: toViewRate(row.ingest_bytes_per_second, row.ingest_bytes_burst),
    ingest_share: row.ingest_share,
    telemetry_stream: row.telemetry_stream,
    ingest_answer: row.ingest_answer,
    client_address: row.client_address,
    store_client_address: row.store_client_address,
    rest_rate: toViewRate(row.rest_rate_per_second, row.rest_burst),
    retention: toRetention(row),
    public_api_key: row.public_api_key,
    hmac_secret: row.hmac_secret,
    shared_secret_off: row.shared_secret_off,
    install_roots: row.install_roots,
    webhook_secret: row.webhook_secret,
  }
}

const toViewRate = (perSecond: number | null, burst: number | null) =>
  perSecond === null || burst === null ? null : { per_second: perSecond, burst }

function toRetention(row: ViewRow): TenantView['retention'] {
  return {
    events: toRetentionView('events', row.event_retention_days),
    alerts: toRetentionView('alerts', row.alert_retention_days),
    deliveries: toRetentionView('deliveries', row.delivery_retention_days),
  }
}
