/**
 * The service on one nats-server: two edges, a scorer, delivery and a console as processes of their
 * own, with PostgreSQL, ClickHouse and a receiver of webhooks. Each process can be restarted with
 * another NATS_URL, at the same address.
 */
import { randomBytes } from 'node:crypto'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import type { NatsUser } from '../../../deploy/nats-users.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { callAdmin, type Tenant } from '../../support/http/tenant-client.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { runDi } from '../../support/process/command-line.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'
import { migrate } from '../cluster/rig.ts'
import { readStoredEvents } from '../support/stored-facts.ts'

const serviceNames = ['ingest', 'scorer', 'delivery', 'console'] as const
type Moved = (typeof serviceNames)[number]

/** What is common to one server and to three. */
export type NatsAddress = { url: string; urlOf: (user: NatsUser) => string }

export type Reconciled = {
  agrees: boolean
  hours: { accepted: number; decided: number; delivered: number; differences: unknown[] }[]
}

export type GrowRig = {
  /** The single server. */
  old: TestNats
  edges: ServiceProcess[]
  scorer: ServiceProcess
  delivery: ServiceProcess
  console: ServiceProcess
  tenant: Tenant
  /** Starts another process at the single server. */
  start: (name: Moved) => Promise<ServiceProcess>
  /** Restarts a process with the addresses of other NATS servers. */
  moveTo: (service: ServiceProcess, nats: NatsAddress) => Promise<void>
  migrate: (nats: NatsAddress, args?: string[]) => Promise<void>
  /** Runs `di` as the operator. @returns what it printed @throws with what it says of a failure */
  di: (args: string[], env?: Record<string, string>) => Promise<string>
  /** The settings of a console with these servers. */
  consoleEnv: (nats: NatsAddress) => Record<string, string>
  /** How many rows a reader sees of each event. */
  readEvents: () => Promise<Map<string, number>>
  /** The session of each alert, in the order of `seq`. */
  readAlerts: () => Promise<{ sessionId: string; seq: number }[]>
  /** Webhooks that the receiver got, by the id of their delivery. */
  countWebhooks: () => Map<string, number>
  reconcile: () => Promise<Reconciled>
  stop: () => Promise<void>
}

const tenantId = 'acme'

/** Starts everything and makes one sandbox tenant. */
export const startGrowRig = (): Promise<GrowRig> => startWhole(startAll)

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<GrowRig> {
  const starting = [startNats(), startPostgres(), startClickhouse(), startReceiver()] as const
  const [old, database, engine, receiver] = await Promise.all(starting)
  closing.push(old.stop, database.stop, engine.stop, receiver.close)
  const token = randomBytes(32).toString('base64url')
  const common = {
    POSTGRES_URL: await database.createDatabase(),
    CLICKHOUSE_URL: engine.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: token,
    ALLOW_PRIVATE_WEBHOOKS: '1',
    LOG_LEVEL: 'error',
  }
  const onCluster = (nats: NatsAddress): Record<string, string> =>
    nats === old ? {} : { NATS_REPLICAS: '3' }
  const runMigrate = (nats: NatsAddress, args: string[] = []) =>
    migrate({ ...common, ...onCluster(nats), NATS_URL: nats.urlOf('migrate') }, args)
  await runMigrate(old)
  const envs = new Map<ServiceProcess, Record<string, string>>()
  const start = async (name: Moved) => {
    const env: Record<string, string> = { ...common, NATS_URL: old.urlOf(name) }
    const service = await createServiceProcess(name, env)
    envs.set(service, env)
    closing.push(service.kill)
    await service.start()
    return service
  }
  const names = ['console', 'scorer', 'delivery', 'ingest', 'ingest'] as const
  const [admin, scorer, delivery, ...edges] = await Promise.all(names.map(start))
  const postgres = createPostgres(common.POSTGRES_URL, { role: 'test', log: quietLog })
  const clickhouse = createClickhouse(engine.url, { name: 'test' })
  closing.push(postgres.close, () => clickhouse.close())
  const body = { tenant_id: tenantId, environment: 'sandbox', webhook_url: receiver.url }
  const create = { method: 'POST', path: '/tenants', body }
  const tenant = await callAdmin<Tenant>(admin!.url, token, create)
  await until('the edges are ready', async () =>
    (await Promise.all(edges.map((edge) => edge.isReady()))).every(Boolean),
  )
  const di: GrowRig['di'] = async (args, env = {}) => {
    const result = await runDi(args, { CONSOLE_URL: admin!.url, ADMIN_TOKEN: token, ...env })
    if (result.status !== 0) throw new Error(`di ${args.join(' ')}: ${result.stderr}`)
    return result.stdout
  }
  return {
    old,
    edges,
    scorer: scorer!,
    delivery: delivery!,
    console: admin!,
    tenant,
    di,
    stop,
    start,
    migrate: runMigrate,
    moveTo: async (service, nats) => {
      await service.terminate()
      const env = envs.get(service)!
      Object.assign(env, onCluster(nats), { NATS_URL: nats.urlOf(service.name as NatsUser) })
      await service.start()
    },
    consoleEnv: (nats) => ({ ...common, ...onCluster(nats), NATS_URL: nats.urlOf('console') }),
    readEvents: () => readStoredEvents(clickhouse, tenantId),
    readAlerts: async () => {
      const { rows } = await postgres.query<{ session_id: string; seq: string }>(
        'select session_id, seq from alerts where tenant_id = $1 order by seq',
        [tenantId],
      )
      return rows.map(({ session_id, seq }) => ({ sessionId: session_id, seq: Number(seq) }))
    },
    countWebhooks: () => {
      const counts = new Map<string, number>()
      for (const { headers } of receiver.requests) {
        const id = String(headers['x-service-delivery'])
        counts.set(id, (counts.get(id) ?? 0) + 1)
      }
      return counts
    },
    reconcile: async () => {
      const { agrees, data } = JSON.parse(await di(['--json', 'reconcile', tenantId]))
      return { agrees, hours: data }
    },
  }
}
