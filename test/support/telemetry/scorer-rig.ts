// Scorers as the stack runs them, in separate processes, on real servers that a test may kill; and
// queries of the stores behind them.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createHistoryStore, type HistoryStore } from '#shared/io/devices/history-store.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startStreamKeeper } from '#shared/io/nats/streams/stream-keeper.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { nodeEnv } from '../process/node-env.ts'
import { until } from '../process/until.ts'
import { startClickhouse, type TestClickhouse } from '../servers/clickhouse-server.ts'
import { startNats, type TestNats } from '../servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../servers/postgres-server.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'
import { type EventFacts, makeMessage } from './accepted-events.ts'
import { proveBatch, testTelemetryKey } from './telemetry-proof.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

export type ScorerProcess = {
  child: ChildProcess
  url: string
  /** Ends it by a signal and resolves to its exit code, null when the signal ended it. */
  end: (signal: NodeJS.Signals) => Promise<number | null>
  readMetric: (name: string, labels?: string) => Promise<number>
}

export type ScorerRig = {
  /** Addresses of its servers, for other processes. */
  env: Record<string, string>
  natsServer: TestNats
  postgresServer: TestPostgres
  nats: Nats
  postgres: Postgres
  clickhouse: Clickhouse
  history: HistoryStore
  killClickhouse: () => Promise<void>
  restartClickhouse: () => Promise<void>
  /** @param stream the number of its telemetry stream, 1 by default */
  addTenant: (tenantId: string, stream?: number) => Promise<void>
  startScorer: (more?: Record<string, string>) => Promise<ScorerProcess>
  /** Publishes each list as one batch message. */
  publish: (...batches: readonly EventFacts[][]) => Promise<void>
  /** @param stream 1 by default */
  publishRaw: (data: Uint8Array, stream?: number) => Promise<void>
  /** Whether every message is acknowledged. */
  isDrained: () => Promise<boolean>
  drained: (limitMs?: number) => Promise<unknown>
  /** Makes the broker deliver everything again from the beginning. */
  redeliverAll: () => Promise<void>
  /** Ends the remaining scorers. */
  endScorers: () => Promise<void>
  close: () => Promise<void>
}

export async function createScorerRig({
  telemetryStreams = 1,
  keepsStreams = true,
} = {}): Promise<ScorerRig> {
  const log = createLog('test', 'silent')
  const path = mkdtempSync(join(tmpdir(), 'clickhouse-'))
  const [natsServer, postgresServer, firstClickhouse] = await Promise.all([
    startNats(),
    startPostgres(),
    startClickhouse({ path, isMigrated: true }),
  ])
  let clickhouseServer: TestClickhouse = firstClickhouse
  const clickhouseUrl = clickhouseServer.url
  const postgresUrl = await postgresServer.createMigratedDatabase()
  const nats = await connectNats({ url: natsServer.url, telemetryStreams }, 'test', log)
  await ensureStreams(nats)
  const metrics = createMetrics('console')
  const keeper = keepsStreams ? startStreamKeeper({ findNats: () => nats, log, metrics }) : null
  const postgres = createPostgres(postgresUrl, { role: 'test', log, lockTimeoutMs: 20_000 })
  const clickhouse = createClickhouse(clickhouseUrl, { name: 'test' })
  const scorers: ScorerProcess[] = []
  // The counts of pending messages lag briefly behind a publish; the acknowledged sequence is never
  // ahead.
  const isDrained = async () => {
    for (const { stream, scorer, decider } of nats.telemetryStreams) {
      const { state } = await nats.manager.streams.info(stream)
      for (const durable of [scorer, decider]) {
        const info = await nats.manager.consumers.info(stream, durable)
        if (info.ack_floor.stream_seq !== state.last_seq) return false
      }
    }
    return true
  }
  const env = {
    NATS_URL: natsServer.urlOf('scorer'),
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    TELEMETRY_KEY: testTelemetryKey,
    TELEMETRY_STREAMS: String(telemetryStreams),
  }
  const endScorers = async () => {
    await Promise.all(scorers.splice(0).map((scorer) => scorer.end('SIGKILL')))
  }
  const publishRaw = async (data: Uint8Array, stream = 1) => {
    const { subject } = toTelemetryStream(stream)
    await nats.jetstream.publish(subject, data, { headers: proveBatch(data) })
  }
  return {
    env,
    natsServer,
    postgresServer,
    nats,
    postgres,
    clickhouse,
    history: createHistoryStore(clickhouse),
    killClickhouse: async () => {
      await clickhouseServer.kill('SIGKILL')
    },
    restartClickhouse: async () => {
      const port = Number(new URL(clickhouseUrl).port)
      clickhouseServer = await startClickhouse({ path, port })
    },
    addTenant: (tenantId, stream) => insertBareTenants(postgres, [tenantId], 'sandbox', stream),
    startScorer: async (more = {}) => {
      const scorer = await startScorer({ ...env, ...more })
      scorers.push(scorer)
      return scorer
    },
    publish: async (...batches) => {
      for (const batch of batches) await publishRaw(makeMessage(batch))
    },
    publishRaw,
    isDrained,
    drained: (limitMs) => until('everything is acknowledged', isDrained, limitMs),
    redeliverAll: async () => {
      for (const { stream, scorer, decider } of nats.telemetryStreams) {
        for (const durable of [scorer, decider])
          await nats.manager.consumers.delete(stream, durable)
      }
      await ensureStreams(nats)
    },
    endScorers,
    close: async () => {
      await endScorers()
      await keeper?.stop()
      await nats.close()
      await clickhouse.close()
      await postgres.close()
      await Promise.all([natsServer.stop(), postgresServer.stop(), clickhouseServer.stop()])
      rmSync(path, { recursive: true, force: true })
    },
  }
}

async function startScorer(env: Record<string, string>): Promise<ScorerProcess> {
  const child = spawn(process.execPath, ['services/scorer/main.ts'], {
    cwd: projectDir,
    env: {
      ...nodeEnv(),
      SCORER_LISTEN: '127.0.0.1:0',
      LOG_LEVEL: 'info',
      // Tests need every row, on any machine; the time limit is tested with a clock.
      SHADOW_HOLD_MAX_MS: '60000',
      PARENT_PID: String(process.pid),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit') as Promise<[number | null]>
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk
    })
    child.once('exit', () => reject(new Error(`the scorer ended before it listened: ${output}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, url: listening } = JSON.parse(line) as { msg: string; url?: string }
      if (msg === 'listening' && listening !== undefined) resolve(listening)
    })
  })
  return {
    child,
    url,
    end: async (signal) => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      return (await exited)[0]
    },
    readMetric: async (name, labels = '') => {
      const text = await (await fetch(`${url}/metrics`)).text()
      let sum = 0
      for (const line of text.split('\n')) {
        if (line.startsWith(`${name}{`) && line.includes(labels)) {
          sum += Number(line.slice(line.lastIndexOf(' ')))
        }
      }
      return sum
    },
  }
}
