/**
 * Everything that one process writes and another one reads, as this release writes and reads it.
 * `npm run record:release` records it, and later releases are held to the record.
 */
import type { z } from 'zod'
import { toAlertId, toDeliveryId, toEventId } from '#shared/core/base/ids.ts'
import { deliveryHintSchema } from '#shared/core/deliveries/delivery-hint.ts'
import { toListHash } from '#shared/core/lists/lists.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { acceptedKey, acceptedSchema } from '#shared/core/reconciliation/accepted-claims.ts'
import { watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { eventHeaderSchema } from '#shared/core/telemetry/event-batch.ts'
import * as natsNames from '#shared/core/telemetry/nats-names.ts'
import {
  requestLogAnswerContext,
  requestLogAnswerSchema,
  requestLogQueryContext,
  requestLogQuerySchema,
} from '#shared/core/telemetry/request-log.ts'
import { telemetrySchema } from '#shared/core/telemetry/submission.ts'
import {
  connectionListKey,
  connectionListSchema,
  edgeEntrySchema,
  edgeGoneSchema,
  edgeKey,
  listKey,
  listShardSchema,
  policyKey,
  syncedEntrySchema,
  syncedKey,
  tenantEntrySchema,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import { rotationProgressSchema } from '#shared/core/tenants/rotation-progress.ts'
import {
  staleSecretKey,
  staleSecretReportSchema,
} from '#shared/core/tenants/stale-secret-reports.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import { actionValues } from '#shared/io/clickhouse/clickhouse.ts'
import { telemetryColumns } from '#shared/io/telemetry/telemetry-rows.ts'
import { isPolicyDocument } from '#shared/io/tenants/directory/tenant-directory.ts'
import { removalSchema, toRemovalKey } from '#shared/io/tenants/removal-list.ts'
import {
  announcement,
  bucketEntry,
  directoryEntry,
  type Format,
  plainJson,
  readBatch,
  requestLogMessage,
  sealer,
  writeBatch,
  writeHint,
} from './framing.ts'

const tenantId = 'acme'
const edgeId = 'edge-1'
const signals = {
  root: { magisk_detected: true },
  emulator: {},
  debugger: { frida_detected: true },
  tamper: {},
  ecosystem: {},
  network: { vpn_active: null },
}
const body = {
  tenant_id: tenantId,
  device_id: 'phone/1 ü',
  session_id: 's-1',
  user_id: 'ada',
  account_id: 'a-1',
  occurred_at: '2026-01-01T00:00:00Z',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
  scorer: { rasp_score: 12, rasp_action: 'ALLOW', rasp_flags: ['CLIENT'] },
  signals,
  unknown_member: { kept: true },
}

const eventSchema = eventHeaderSchema.extend({ body: telemetrySchema })
const bodyId = toEventId(Buffer.from(JSON.stringify(body)))
const event: Required<z.infer<typeof eventHeaderSchema>> & { body: typeof body } = {
  event_id: bodyId,
  body_id: bodyId,
  tenant_id: tenantId,
  received_at: 1_767_225_600_000,
  rasp_score: 80,
  rasp_action: 'BLOCK',
  reasons: [{ code: 'HOOKING_DETECTED', weight: 80, evidence: { signals: ['debugger.frida'] } }],
  policy_version: 3,
  policy_hash: 'policy-1',
  epoch: 2,
  inexact_numbers: true,
  server_signals: { attestation: { install_key: true }, connection: { country: 'DE' } },
  install: { token_id: 'token-1', attested_key: null, counter: 7 },
  connection: {
    network: '81.2.69.0/24',
    address_hash: 'AAAAAAAAAAAAAAAAAAAAAA',
    address: '81.2.69.142',
    country: 'GB',
    asn: 20712,
    organization: 'Andrews & Arnold Ltd',
    latitude: 51.5,
    longitude: -0.1,
    kinds: ['vpn'],
  },
  body,
}

const seal = (secret: string) => sealer.seal(secret, { tenantId, kind: 'hmac' })
const tenant: Required<z.infer<typeof tenantEntrySchema>> = {
  tenant_id: tenantId,
  environment: 'live',
  status: 'active',
  epoch: 2,
  hmac_secret_sealed: seal('the present secret'),
  hmac_secret_retired_sealed: seal('the retired secret'),
  policy_version: 3,
  policy_hash: toPolicyHash(defaultPolicy),
  ingest_rate: { perSecond: 10, burst: 20 },
  ingest_bytes: { perSecond: 1_000, burst: 2_000 },
  ingest_share: 0.5,
  list_shards: 1,
  connection_list: true,
  telemetry_stream: 2,
  install_roots: [
    {
      epoch: 1,
      sealed: sealer.seal(Buffer.alloc(32, 1).toString('base64'), {
        tenantId,
        kind: 'install_root',
      }),
    },
  ],
  shared_secret_off: true,
  apps: [
    {
      platform: 'android',
      id: 'com.example.bank',
      signers: ['ab'.repeat(32)],
      play_keys_sealed: sealer.seal('the Play keys', { tenantId, kind: 'play' }),
    },
    { platform: 'ios', id: 'com.example.bank', team: 'ABCDE12345', development: true },
  ],
  ingest_answer: 'interface',
  client_address: 'body',
  store_client_address: true,
  address_key_sealed: sealer.seal(Buffer.alloc(32, 2).toString('base64'), {
    tenantId,
    kind: 'address',
  }),
}

const requestLogQuery = { query_id: 'query-1', tenant_id: tenantId }
const reports = { purpose: 'edge report' } as const
const removals = { bucketName: natsNames.removalsBucket, purpose: 'removal' } as const

const format = <Value>(one: Format<Value>): Format<never> => one as unknown as Format<never>

export const formats: Readonly<Record<string, Format<never>>> = {
  'telemetry batch': format({
    schema: eventSchema as unknown as z.ZodType<typeof event>,
    sample: event,
    key: () => '',
    write: writeBatch,
    read: readBatch,
  }),
  'tenant entry': format(
    directoryEntry({
      schema: tenantEntrySchema,
      sample: tenant,
      key: (value) => tenantKey(value.tenant_id),
    }),
  ),
  'list shard': format(
    directoryEntry({
      schema: listShardSchema,
      sample: {
        tenant_id: tenantId,
        shard: 0,
        version: 4,
        entries: [
          [toListHash('device', 'phone-1'), 'deny', 'device', 'entry-1', 'chargeback', null],
          [toListHash('user', 'ada'), 'allow', 'user', 'entry-2', 'employee', 1_800_000_000_000],
        ],
      },
      key: (value) => listKey(value.tenant_id, value.shard),
    }),
  ),
  'connection list': format(
    directoryEntry({
      schema: connectionListSchema,
      sample: {
        tenant_id: tenantId,
        version: 4,
        entries: [
          ['8.8.8.0/24', 'deny', 'network', 'entry-1', 'attack', null],
          ['64500', 'allow', 'asn', 'entry-2', 'office', 1_800_000_000_000],
          ['DE', 'deny', 'country', 'entry-3', 'embargo', null],
        ],
      },
      key: (value) => connectionListKey(value.tenant_id),
    }),
  ),
  'policy document': format(
    plainJson<Policy>({
      schema: policySchema as unknown as z.ZodType<Policy>,
      sample: defaultPolicy,
      key: (value) => policyKey(toPolicyHash(value)),
      read: (text, key) => {
        const isOwn = isPolicyDocument(text, key.slice(policyKey('').length))
        if (!isOwn) throw new Error('it has another address')
        return policySchema.parse(JSON.parse(text))
      },
    }),
  ),
  'synced entry': format(
    directoryEntry({ schema: syncedEntrySchema, sample: { tenants: 1 }, key: () => syncedKey }),
  ),
  'edge announcement': format(
    announcement({
      schema: edgeEntrySchema,
      sample: { edge_id: edgeId, applied_revision: 7 },
      key: (value) => edgeKey(value.edge_id),
    }),
  ),
  'end of an edge': format(
    announcement({
      schema: edgeGoneSchema,
      sample: { edge_id: edgeId, gone: true },
      key: (value) => edgeKey(value.edge_id),
    }),
  ),
  'stale secret report': format(
    bucketEntry(
      { bucketName: natsNames.staleSecretBucket, ...reports },
      {
        schema: staleSecretReportSchema,
        sample: { last4: 'cret', versions: [{ sdk_version: '4.2.0', requests: 3, age_ms: 1_500 }] },
        key: () => staleSecretKey(tenantId, edgeId),
      },
    ),
  ),
  'accepted claim': format(
    bucketEntry(
      { bucketName: natsNames.acceptedBucket, ...reports },
      {
        schema: acceptedSchema,
        sample: { edge_id: edgeId, hour_ms: 1_767_225_600_000, accepted: { [tenantId]: 12 } },
        key: (value) => acceptedKey(value.edge_id, value.hour_ms / 3_600_000, 0),
      },
    ),
  ),
  'removed key': format(
    bucketEntry(removals, {
      schema: removalSchema,
      sample: { kind: 'api_key', tenant_id: tenantId, sha256: '0a'.repeat(32) },
      key: toRemovalKey,
    }),
  ),
  'newest webhook secret': format(
    bucketEntry(removals, {
      schema: removalSchema,
      sample: { kind: 'webhook', tenant_id: tenantId, secret_id: 5 },
      key: toRemovalKey,
    }),
  ),
  'erased subject': format(
    bucketEntry(removals, {
      schema: removalSchema,
      sample: {
        kind: 'erasure',
        tenant_id: tenantId,
        subject: 'device',
        sha256: '0b'.repeat(32),
        started_at: '2026-01-01T00:00:00.000Z',
      },
      key: toRemovalKey,
    }),
  ),
  'request log query': format(
    requestLogMessage(requestLogQueryContext, {
      schema: requestLogQuerySchema,
      sample: requestLogQuery,
    }),
  ),
  'request log answer': format(
    requestLogMessage(requestLogAnswerContext(requestLogQuery), {
      schema: requestLogAnswerSchema,
      sample: {
        edge_id: edgeId,
        since_ms: 1_767_225_600_000,
        left_out: 1,
        entries: [
          {
            kind: 'registration',
            at_ms: 1_767_225_600_000,
            request_id: 'request-1',
            status: 200,
            code: 'accepted',
            reason: null,
            detail: null,
            verified: true,
            device_id: 'phone-1',
            sdk_version: '4.2.0',
            event_id: event.event_id,
            rasp_score: 80,
            rasp_action: 'BLOCK',
          },
        ],
      },
    }),
  ),
  'delivery hint': format(
    plainJson({
      schema: deliveryHintSchema,
      sample: { tenant_id: tenantId, delivery_id: 'dlv_1' },
      write: writeHint,
    }),
  ),
  'rotation progress': format(
    plainJson({
      schema: rotationProgressSchema,
      sample: {
        step: 'old_off',
        edges: [
          {
            edge_id: edgeId,
            old_off: { outcome: 'confirmed', at: '2026-01-01T00:00:00.000Z' },
            new_on: null,
          },
        ],
        duration_ms: 40,
        failure: 'an edge is away',
      },
    }),
  ),
}

/** What all processes derive or name alike. */
export const constants = {
  names: {
    ...Object.fromEntries(Object.entries(natsNames).filter(([, name]) => typeof name === 'string')),
    answers: natsNames.requestLogAnswerSubject('query-1'),
  },
  ids: {
    event: toEventId(Buffer.from('{"a":1}')),
    alert: toAlertId({ tenantId, deviceId: 'phone-1', sessionId: 's-1', action: 'BLOCK' }),
    delivery: toDeliveryId('alr_1'),
    activityKey: toKeyHash('device', 'phone-1'),
    listEntry: toListHash('device', 'phone-1'),
  },
  /** What values in ClickHouse mean. */
  stored: {
    actions: actionValues,
    signalBits: Object.fromEntries(watchedSignals.map((signal, bit) => [signal, bit])),
    filledCategories: toFilledCategories(signals),
    telemetryColumns: Object.fromEntries(telemetryColumns.map((column) => [column, true])),
  },
}
