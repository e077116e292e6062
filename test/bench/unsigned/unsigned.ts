/**
 * `npm run bench -- unsigned`: what traffic without a valid signature, key or session costs each
 * public listener, in CPU of a kilobyte and in memory, by shape. Each process has a heap of 256 MB
 * at most, and takes requests from 127.0.0.1 for a minute or two in all.
 */
import { parseArgs } from 'node:util'
import { print } from '../../faults/support/drill.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { startEdgeRig } from '../../support/telemetry/edge-rig.ts'
import { type MeasuredService, startMeasured } from '../measured-process.ts'
import { type Check, type Figure, publishReport, single } from '../report.ts'
import { type Cost, measureIdle, press } from './press.ts'
import { makeShapes, type Shape, type Target } from './shapes.ts'

/** What a connection, an answered request and a kilobyte may cost, in µs: a µs for 64 bytes. */
const allowed = { connection: 500, request: 500, kilobyte: 16 }
const memoryMbMax = 256
const answerLimitMs = 20_000
/** Of all shapes. They take a minute; a busy machine leaves some out. */
const allMs = 150_000

/** @param args `--only TEXT` runs the shapes whose listener and name have the text */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({ args, options: { only: { type: 'string', default: '' } } })
  const targets: Target[] = ['ingest', 'api', 'console']
  const { services, stop } = await startListeners()
  const figures: Figure[] = []
  const checks: Check[] = []
  const left: string[] = []
  const untilMs = performance.now() + allMs
  try {
    for (const target of targets) {
      const service = services[target]
      const port = Number(new URL(service.url).port)
      const healthUrl = `${service.internalUrl}/healthz`
      const idleShare = await measureIdle(service.pid)
      const pressed = { port, pid: service.pid, healthUrl, idleShare }
      let peakMb = 0
      for (const shape of makeShapes(target)) {
        const name = `${target}: ${shape.name}`
        if (!name.includes(values.only)) continue
        if (performance.now() > untilMs) {
          left.push(name)
          continue
        }
        const cost = await press(pressed, shape)
        peakMb = Math.max(peakMb, cost.peakMb)
        figures.push(toFigure(name, shape, cost))
        print(toLine(name, cost))
      }
      figures.push(single(`${target}: peak of the memory`, 'MB', peakMb, memoryMbMax))
      checks.push(await checkServing(target, service))
    }
  } finally {
    await stop()
  }
  checks.push({ name: 'in time', ok: left.length === 0, detail: `${left.length} shapes left out` })
  publishReport({
    part: 'unsigned',
    command: ['npm run bench -- unsigned', ...args].join(' '),
    versions: {},
    durability: 'nothing is stored',
    figures,
    checks,
  })
}

/** CPU as a share of what the traffic may cost. */
function toFigure(name: string, { connections: least }: Shape, cost: Cost): Figure {
  const { kilobytes, connections, answers, cpuMs } = cost
  const allowedUs =
    Math.max(connections, least) * allowed.connection +
    answers * allowed.request +
    kilobytes * allowed.kilobyte
  return single(name, 'of the CPU that it may cost', (cpuMs * 1_000) / allowedUs, 1)
}

function toLine(name: string, cost: Cost): string {
  const { kilobytes, connections, answers, open, cpuMs, memoryMb } = cost
  const perKilobyte = (cpuMs * 1_000) / kilobytes
  return [
    name.padEnd(50),
    `${perKilobyte.toFixed(perKilobyte < 10 ? 2 : 0)} µs/KB`.padStart(14),
    `${((memoryMb * 1e6) / (kilobytes * 1_024)).toFixed(2)} bytes kept of one`.padStart(24),
    `${memoryMb.toFixed(0)} MB`.padStart(8),
    `${open} in flight`.padStart(14),
    `${kilobytes.toFixed(0)} KB, ${connections} connections, ${answers} answers`,
  ].join('')
}

/** Whether the process still answers, in time. */
async function checkServing(name: Target, { url, internalUrl }: MeasuredService): Promise<Check> {
  const startMs = performance.now()
  const ask = async (address: string) =>
    (await fetch(address, { signal: AbortSignal.timeout(answerLimitMs) })).status
  const statuses = await Promise.all([ask(`${url}/healthz`), ask(`${internalUrl}/readyz`)]).catch(
    (error: Error) => [error.message],
  )
  const tookMs = performance.now() - startMs
  return {
    name: `${name} serves afterwards`,
    ok: statuses.every((status) => status === 200),
    detail: `${statuses.join(' and ')} in ${tookMs.toFixed(0)} ms`,
  }
}

async function startListeners() {
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const each of stops.reverse()) await each()
  }
  try {
    const rig = await startEdgeRig()
    stops.push(rig.stop)
    await rig.projectTenant('bench-tenant')
    const server = await startPostgres()
    stops.push(server.stop)
    const clickhouse = await startClickhouse()
    stops.push(clickhouse.stop)
    await migrateClickhouse(clickhouse.url)
    const postgresUrl = await server.createDatabase()
    await migratePostgres(postgresUrl)
    const start = async (name: Target) => {
      const service = await startMeasured(
        name,
        {
          NATS_URL: rig.server.url,
          MASTER_KEY: rig.masterKey,
          POSTGRES_URL: postgresUrl,
          CLICKHOUSE_URL: clickhouse.url,
          ADMIN_TOKEN: 'bench-admin-token-of-forty-characters-or-so',
          LOG_LEVEL: 'error',
        },
        [`--max-old-space-size=${memoryMbMax}`],
      )
      stops.push(service.stop)
      return service
    }
    const services = {
      ingest: await start('ingest'),
      api: await start('api'),
      console: await start('console'),
    }
    return { services, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
