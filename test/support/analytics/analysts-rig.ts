// Analysts on real servers: the engine with its views, Postgres with the analysts, the local
// stack's address for them, and two tenants with distinguishable rows. The engine also has the two
// users that the console would make on a ClickHouse server, from its file of users.
import { hash, randomBytes } from 'node:crypto'
import { isAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import {
  type AnalystFront,
  openAnalystFront,
} from '../../../deploy/local/clickhouse/analyst-front.ts'
import type { EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'
import {
  type AnalystDeps,
  type CreatedAnalyst,
  createAnalyst,
} from '../../../services/console/analytics/manage-analysts.ts'
import { testLog } from '../http/console-rig.ts'
import { type ClickhouseReply, callClickhouse } from '../servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../servers/clickhouse-server.ts'
import { migrateClickhouse } from '../servers/databases.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'
import type { Attempt } from './analyst-attempts.ts'

export type AnalystsRig = {
  engine: TestClickhouse
  postgres: Postgres
  front: AnalystFront
  /** The metrics of the front. */
  metrics: Metrics
  deps: AnalystDeps
  /** Runs a statement as the service. */
  asService: (statement: string) => Promise<string>
  /** One query at the local stack's address, by default as an analyst of acme. */
  runQuery: (
    attempt: Omit<Attempt, 'what' | 'gets'> & { signal?: AbortSignal },
    as?: CreatedAnalyst,
  ) => Promise<ClickhouseReply>
  /** One query at the engine itself, as a user that a server would have for an analyst. */
  runOnServer: (
    attempt: Omit<Attempt, 'what' | 'gets'> & { signal?: AbortSignal },
    analyst?: (typeof serverAnalysts)[number],
  ) => Promise<ClickhouseReply>
  acme: CreatedAnalyst
  globex: CreatedAnalyst
  close: () => Promise<void>
}

/** 50 events of 5 users on 10 devices of each tenant, and 5 alerts with their deliveries. */
const rowsOf = (tenant: string) => [
  `insert into telemetry (tenant_id, device_id, session_id, event_id, received_at, user_id, body,
     rasp_score, reasons, detected_signals, platform, stream_offset)
   select '${tenant}', concat('${tenant}-', toString(number % 10)), toString(number % 20),
     concat('${tenant}-', toString(number)), now64(3) - number, concat('${tenant}-u', toString(number % 5)),
     '{"signals":{}}', number, '[{"code":"X","weight":1,"evidence":{"signals":[]}}]',
     ['root.su_binary'], 'android', number + 1
   from numbers(50)`,
  `insert into alerts_replica (tenant_id, created_at, alert_id, seq, device_id, action, risk_score,
     reason_codes, reason_weights, reason_evidence, disposition, disposition_at, disposition_from,
     disposition_to, disposition_actor, disposition_note, round)
   select '${tenant}', now64(3) - number, concat('alr_${tenant}', toString(number)), number,
     concat('${tenant}-', toString(number)), 'BLOCK', 90, ['X'], [90], ['{}'], 'CONFIRMED',
     [now64(3)], ['OPEN'], ['CONFIRMED'], ['ann'], ['note of ${tenant}'], 1
   from numbers(5)`,
  `insert into deliveries_replica (tenant_id, created_at, delivery_id, alert_id, device_id, event,
     state, round)
   select '${tenant}', now64(3) - number, toString(number), concat('alr_${tenant}', toString(number)),
     concat('${tenant}-', toString(number)), 'risk.alert', 'delivered', 1
   from numbers(5)`,
  `insert into reconciliation_accepted values ('${tenant}', toStartOfHour(now()), 'edge', 50)`,
]

export async function createAnalystsRig(): Promise<AnalystsRig> {
  const users = serverAnalysts.map(toServerUser)
  const [engine, server] = await Promise.all([startClickhouse({ users }), startPostgres()])
  const clickhouseUrl = `${engine.url}/device_intelligence`
  const postgresUrl = await server.createMigratedDatabase()
  await migrateClickhouse(clickhouseUrl)
  const clickhouse = createClickhouse(clickhouseUrl, { name: 'test' })
  const postgres = createPostgres(postgresUrl, { role: 'test', log: testLog })
  const asService = async (statement: string) => {
    const params = { database: 'device_intelligence' }
    const reply = await callClickhouse(engine.url, { params, body: statement })
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.text.trim()
  }
  for (const tenant of ['acme', 'globex']) {
    await insertBareTenants(postgres, [tenant])
    for (const statement of rowsOf(tenant)) await asService(statement)
  }
  const metrics = createMetrics('analysts')
  const front = await openAnalystFront({
    port: 0,
    clickhouseUrl,
    log: testLog,
    metrics,
    isAnalyst: (analyst) => isAnalyst(postgres, analyst),
  })
  const deps: AnalystDeps = {
    postgres,
    randomBytes,
    analysts: {
      clickhouse,
      database: 'device_intelligence',
      clickhouseUrl,
      url: front.url,
      isEmbedded: true,
    },
  }
  const create = (tenantId: string) =>
    createAnalyst(deps, { tenantId, name: 'own', actor: 'admin' })
  const acme = await create('acme')
  const globex = await create('globex')
  const call = (url: string, attempt: CallOf, login: { user: string; password: string }) => {
    const { query, params, headers, user = login.user, password = login.password } = attempt
    const basic = Buffer.from(`${user}:${password}`).toString('base64')
    return callClickhouse(url, {
      method: attempt.method ?? 'POST',
      path: attempt.path ?? '/',
      body: query,
      ...(attempt.signal === undefined ? {} : { signal: attempt.signal }),
      ...(params === undefined ? {} : { params }),
      headers: { authorization: `Basic ${basic}`, ...headers },
    })
  }
  return {
    engine,
    postgres,
    front,
    metrics,
    deps,
    asService,
    runQuery: (attempt, as = acme) => call(front.url, attempt, as),
    runOnServer: (attempt, analyst = 'analyst.acme.own') =>
      call(
        new URL('/', engine.url).origin,
        { ...attempt, params: { database: 'analytics', ...attempt.params } },
        { user: analyst, password: toServerPassword(analyst) },
      ),
    acme,
    globex,
    close: async () => {
      await front.close()
      await Promise.all([clickhouse.close(), postgres.close()])
      await Promise.all([engine.stop(), server.stop()])
    },
  }
}

type CallOf = Parameters<AnalystsRig['runQuery']>[0]

/**
 * The analysts that the engine has as users. Its file of users gives no quota to a name with a dot,
 * so the one with a quota has none.
 */
const serverAnalysts = ['analyst.acme.own', 'analyst.globex.own', 'metered'] as const

const toServerPassword = (analyst: string) => `password of ${analyst}`

const toServerUser = (analyst: string): EngineUser => ({
  name: analyst,
  passwordSha256Hex: hash('sha256', toServerPassword(analyst)),
  grants: [],
  isAnalyst: true,
  hasQuota: analyst === 'metered',
})

/** The name of the error that a ClickHouse answered, or its answer. */
export function toOutcome(text: string): string {
  const error = /^Code: \d+\. [\s\S]*?\(([A-Z_0-9]+)\)(?: \(version [^)]*\))?\s*$/.exec(text)
  return (error?.[1] ?? text.trim()).slice(0, 1_000)
}
