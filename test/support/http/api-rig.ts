// The api for tests: its app on real databases, tenants with keys, telemetry in ClickHouse, and a
// client that sends a path unchanged.
import { hash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { type Action, toAction } from '#shared/core/scoring/score.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { type Environment, hashApiKey, toApiKey } from '#shared/core/tenants/credentials.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import {
  type Clickhouse,
  checkClickhouse,
  createClickhouse,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { answerOnce } from '#shared/io/http/idempotent-answers.ts'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createPhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createKeyedLists } from '#shared/io/lists/change-lists.ts'
import { createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import { createScoreStore } from '#shared/io/outcomes/score-store.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { createTelemetryStore, type TelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { readVerdictKeySet } from '#shared/io/verdicts/verdict-key-store.ts'
import { createApiApp } from '../../../services/api/app.ts'
import { startClickhouse } from '../servers/clickhouse-server.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'
import { type CallAnswer, type Caller, createCaller } from './http-call.ts'

export type Answer = CallAnswer & {
  /** The body as JSON. */
  json: <T = Record<string, unknown>>() => T
}

export type ApiRig = {
  url: string
  app: FastifyInstance
  postgres: Postgres
  clickhouse: Clickhouse
  alerts: AlertStore
  telemetry: TelemetryStore
  metrics: Metrics
  /** Adds an active tenant and returns its key. */
  addTenant: (tenantId: string, environment?: Environment) => Promise<string>
  call: (path: string, options?: CallOptions) => Promise<Answer>
  /** Calls the internal listener: `/readyz`, `/metrics`. */
  callInternal: (path: string) => Promise<Answer>
  close: () => Promise<void>
}

export type CallOptions = {
  key?: string | undefined
  method?: string
  headers?: Record<string, string>
  /** The body, sent as JSON; bytes are sent as they are. */
  body?: unknown
}

export type ApiOptions = {
  /**
   * A test that puts the wall clock forward puts the monotonic one forward with it: what the
   * process keeps in memory ages by that one.
   */
  wallMs?: () => number
  monotonicMs?: () => number
  /** How long a statement may take: as long as a busy machine needs, where nothing is away. */
  statementMs?: number
}

/** The api on migrated databases. */
export async function createApiRig(
  urls: {
    postgres: string
    clickhouse: string
  },
  {
    wallMs = Date.now,
    monotonicMs = () => performance.now(),
    statementMs = 60_000,
  }: ApiOptions = {},
): Promise<ApiRig> {
  const log = createLog('test', 'silent')
  const metrics = createMetrics('api')
  const limits = { connectTimeoutMs: statementMs, statementTimeoutMs: statementMs }
  const postgres = createPostgres(urls.postgres, { role: 'test', log, ...limits })
  const clickhouse = createClickhouse(urls.clickhouse, {
    name: 'test',
    requestTimeoutMs: statementMs,
  })
  const alerts = createAlertStore(postgres)
  const app = await createApiApp(
    {
      tenants: createTenantStore(postgres),
      alerts,
      answerOnce: (call, work) => answerOnce(postgres, call, work),
      history: createHistoryStore(clickhouse),
      users: createUserStore(clickhouse),
      phones: {
        ...createPhoneStore(clickhouse, createPhoneCorrections(postgres)),
        ...createPhoneAlerts(postgres),
      },
      events: {
        ...createEventStore(clickhouse),
        ...createEventListStore(clickhouse, {
          nowMs: Date.now,
          monotonicMs: () => performance.now(),
        }),
      },
      policies: createCurrentPolicyStore(postgres),
      lists: createKeyedLists(postgres, Date.now),
      labels: createKeyedLabels(postgres, Date.now),
      countScores: createScoreStore(clickhouse).countScores,
      reconciliation: createReconciliationStore(clickhouse, 'analytics'),
      readVerdictKeys: (nowMs) => readVerdictKeySet(postgres, nowMs),
      nowMs: wallMs,
      monotonicMs,
    },
    { log, metrics },
  )
  const internal = createInternalServer({
    log,
    metrics,
    stopping: () => false,
    readyChecks: {
      postgres: postgres.checkReady,
      clickhouse: () => checkClickhouse(clickhouse),
    },
  })
  const { href: url } = new URL(await listen(app, { host: '127.0.0.1', port: 0 }))
  const internalUrl = await listen(internal, { host: '127.0.0.1', port: 0 })
  const caller = createCaller()
  return {
    url,
    app,
    postgres,
    clickhouse,
    alerts,
    telemetry: createTelemetryStore(clickhouse),
    metrics,
    addTenant: (tenantId, environment = 'live') => addTenant(postgres, tenantId, environment),
    call: (path, options) => call({ url, caller }, path, options),
    callInternal: (path) => call({ url: internalUrl, caller }, path),
    close: async () => {
      caller.close()
      await app.close()
      await internal.close()
      await clickhouse.close()
      await postgres.close()
    },
  }
}

/** The api on servers of its own, which end with it. */
export async function startApiRig(options: ApiOptions = {}): Promise<ApiRig> {
  const [postgres, clickhouse] = await Promise.all([
    startPostgres(),
    startClickhouse({ isMigrated: true }),
  ])
  const url = await postgres.createMigratedDatabase()
  const rig = await createApiRig({ postgres: url, clickhouse: clickhouse.url }, options)
  return {
    ...rig,
    close: async () => {
      await rig.close()
      await Promise.all([postgres.stop(), clickhouse.stop()])
    },
  }
}

async function addTenant(
  postgres: Postgres,
  tenantId: string,
  environment: Environment,
): Promise<string> {
  await insertBareTenants(postgres, [tenantId], environment)
  return await addApiKey(postgres, tenantId, environment)
}

/** Adds a key to a tenant that has none. */
export async function addApiKey(
  postgres: Postgres,
  tenantId: string,
  environment: Environment,
): Promise<string> {
  const key = toApiKey(environment, randomBytes(32))
  await postgres.query(
    `insert into api_keys (key_hash, tenant_id, state, prefix, last4)
     values ($1, $2, 'active', $3, $4)`,
    [hashApiKey(key), tenantId, `dpk_${environment}_`, key.slice(-4)],
  )
  return key
}

/** Sends a request whose path no library normalises first. */
async function call(
  { url, caller }: { url: string; caller: Caller },
  path: string,
  { key, method = 'GET', headers = {}, body }: CallOptions = {},
): Promise<Answer> {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const answer = await caller.send(url, {
    method,
    path,
    headers: { ...authorization, ...type, ...headers },
    body: body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  })
  return { ...answer, json: <T>() => JSON.parse(answer.text) as T }
}

/**
 * An event as the scorer passes it; the same (tenant, device, session, time) gives the same event.
 */
export function acceptEvent(of: {
  tenantId: string
  deviceId: string
  sessionId: string
  atMs: number
  score?: number
  flags?: string[]
  userId?: string
  sdkVersion?: string
  platform?: string
  signals?: Partial<Signals>
}): AcceptedEvent {
  const score = of.score ?? 0
  const action: Action = toAction(score, { review: 40, block: 75 })
  const id = hash('sha256', JSON.stringify([of.tenantId, of.deviceId, of.sessionId, of.atMs]))
  return {
    event_id: `evt_${id.slice(0, 22)}`,
    tenant_id: of.tenantId,
    received_at: of.atMs,
    streamOffset: of.atMs,
    rasp_score: score,
    rasp_action: action,
    reasons: (of.flags ?? []).map((code) => ({ code, weight: 1, evidence: {} })),
    policy_version: 1,
    policy_hash: 'policy',
    epoch: 1,
    body: {
      tenant_id: of.tenantId,
      device_id: of.deviceId,
      session_id: of.sessionId,
      ...(of.userId === undefined ? {} : { user_id: of.userId }),
      sdk_meta: {
        sdk_version: of.sdkVersion ?? '1.0.0',
        platform: of.platform ?? 'android',
        batch_type: 'event',
      },
      scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
      signals: {
        root: {},
        emulator: {},
        debugger: {},
        tamper: {},
        ecosystem: {},
        network: {},
        ...of.signals,
      },
    },
  }
}
