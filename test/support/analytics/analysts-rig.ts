// The local stack's analysts on real servers: the engine with its views, Postgres with the
// analysts, the proxy between them, and two tenants with distinguishable rows.
import { randomBytes } from 'node:crypto'
import { isAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  type AnalystProxy,
  type AnalystProxyOptions,
  openAnalystProxy,
} from '../../../deploy/local/clickhouse/analyst-proxy.ts'
import {
  type AnalystDeps,
  type CreatedAnalyst,
  createAnalyst,
} from '../../../services/console/analytics/manage-analysts.ts'
import { testLog } from '../http/console-rig.ts'
import { type ClickhouseReply, callClickhouse } from '../servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../servers/databases.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'
import type { Attempt } from './analyst-file-attempts.ts'

type ProxyLimits = Partial<
  Pick<AnalystProxyOptions, 'answerBytesMax' | 'limits' | 'metrics' | 'queryMaxMs' | 'sendMaxMs'>
>

export type AnalystsRig = {
  engine: TestClickhouse
  postgres: Postgres
  proxy: AnalystProxy
  deps: AnalystDeps
  /** Runs a statement as the service. */
  asService: (statement: string) => Promise<string>
  /** One query through the proxy, by default as an analyst of acme. */
  runQuery: (
    attempt: Omit<Attempt, 'what' | 'gets'> & { signal?: AbortSignal },
    as?: CreatedAnalyst,
    at?: AnalystProxy,
  ) => Promise<ClickhouseReply>
  /** Another proxy to the same engine. */
  openProxy: (options: ProxyLimits) => Promise<AnalystProxy>
  /** The result of an attempt: an error's name, or the answer. */
  attempt: (attempt: Attempt) => Promise<{ got: string; text: string }>
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
  const [engine, server] = await Promise.all([startClickhouse(), startPostgres()])
  const clickhouseUrl = `${engine.url}/device_intelligence`
  const postgresUrl = await server.createDatabase()
  await Promise.all([migrateClickhouse(clickhouseUrl), migratePostgres(postgresUrl)])
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
  const openProxy = (own: ProxyLimits = {}) =>
    openAnalystProxy({
      port: 0,
      nativePort: 0,
      clickhouseUrl,
      metrics: createMetrics('analysts'),
      answerBytesMax: 8 * 1024 * 1024,
      isAnalyst: (analyst) => isAnalyst(postgres, analyst),
      ...own,
    })
  const proxy = await openProxy()
  const deps: AnalystDeps = {
    postgres,
    randomBytes,
    analysts: { clickhouse, database: 'device_intelligence', clickhouseUrl, url: proxy.url },
  }
  const create = (tenantId: string) =>
    createAnalyst(deps, { tenantId, name: 'own', actor: 'admin' })
  const acme = await create('acme')
  const globex = await create('globex')
  const runQuery: AnalystsRig['runQuery'] = (attempt, as = acme, at = proxy) => {
    const { query, params, headers, user = as.user, password = as.password } = attempt
    const basic = Buffer.from(`${user}:${password}`).toString('base64')
    return callClickhouse(at.url, {
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
    proxy,
    deps,
    asService,
    runQuery,
    openProxy,
    acme,
    globex,
    attempt: async (attempt) => {
      const { text } = await runQuery(attempt).catch(() => ({ text: 'Code: 0. (CUT_OFF)' }))
      const error = /^Code: \d+\. [\s\S]*?\(([A-Z_0-9]+)\)(?: \(version [^)]*\))?\s*$/.exec(text)
      return { text, got: (error?.[1] ?? text.trim()).slice(0, 1_000) }
    },
    close: async () => {
      await proxy.close()
      await Promise.all([clickhouse.close(), postgres.close()])
      await Promise.all([engine.stop(), server.stop()])
    },
  }
}
