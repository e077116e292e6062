/**
 * What the benchmarks of an edge share: a broker, an edge as production runs it, a bare server to
 * compare with, and the load on them.
 */
import { randomBytes } from 'node:crypto'
import { addressKeyBytes } from '#shared/core/tenants/client-address.ts'
import { sealRoots } from '../../support/installs/install-client.ts'
import { type EdgeRig, startEdgeRig, type TestTenant } from '../../support/telemetry/edge-rig.ts'
import {
  type BenchChild,
  forkChild,
  type MeasuredService,
  readCpuSeconds,
  startMeasured,
} from '../measured-process.ts'
import type { LoadOrder, LoadResult } from './edge-load.ts'

export const connections = 64
/** More requests per second than the bare server, and an edge, can handle. */
const baselinePerSecondMax = 55_000
export const edgePerSecondMax = 35_000
/** Of the install root of the tenant. */
export const rootEpoch = 1

export type Options = { rounds: number; seconds: number }

export type Bench = Options & {
  rig: EdgeRig
  tenant: TestTenant
  load: BenchChild
  baseline: { port: number; pid: number }
  edge: MeasuredService
  /** Events answered with a 200 so far. */
  accepted: number
}

/** One run of a load against one server. */
export type Run = {
  rate: number
  cpuUs: number
  natsUs: number
  p50: number
  p99: number
  result: LoadResult
}

export const portOf = (url: string) => Number(new URL(url).port)

export async function startBench(options: Options, syncAlways: boolean): Promise<Bench> {
  const rig = await startEdgeRig({ syncAlways })
  // No scorer runs, so the events of every measurement stay undecided in the stream. The default
  // share of 0.25 would end in 429 before the last measurement.
  const tenantId = 'bench-tenant'
  const tenant = await rig.projectTenant(tenantId, {
    ingest_share: 0.9,
    install_roots: sealRoots(rig.sealer, tenantId, rootEpoch),
    address_key_sealed: rig.sealer.seal(randomBytes(addressKeyBytes).toString('base64'), {
      tenantId,
      kind: 'address',
    }),
  })
  const { worker: load } = await forkChild('./edge/edge-load.ts')
  const { worker: baseline } = await forkChild('./edge/edge-baseline.ts')
  const baselinePort = await baseline.request<number>(tenant.secret)
  const edge = await startEdge(rig)
  const pid = baseline.child.pid!
  const bench = { ...options, rig, tenant, load, edge, accepted: 0 }
  return { ...bench, baseline: { port: baselinePort, pid } }
}

/** @param more its port, shared with others, or its network data */
export async function startEdge(
  rig: EdgeRig,
  more: { sharedPort?: number; networkData?: string } = {},
): Promise<MeasuredService> {
  const { sharedPort, networkData } = more
  // One machine sends for thousands of clients, as a proxy does.
  const crowded = { TRUSTED_PROXIES: '127.0.0.1' }
  const env = {
    NATS_URL: rig.server.urlOf('ingest'),
    MASTER_KEY: rig.masterKey,
    ...crowded,
    ...(networkData === undefined ? {} : { NETWORK_DATA: networkData }),
  }
  if (sharedPort === undefined) return startMeasured('ingest', env)
  const listen = { INGEST_LISTEN: `127.0.0.1:${sharedPort}`, REUSE_PORT: '1' }
  return startMeasured('ingest', { ...env, ...listen })
}

export async function stopBench({ edge, load, baseline, rig }: Bench): Promise<void> {
  await edge.stop()
  load.stop()
  process.kill(baseline.pid)
  await rig.stop()
}

/** As fast as answers come. */
export async function runClosed(
  bench: Bench,
  server: { port: number; pid: number },
  more: { seconds?: number } = {},
): Promise<Run> {
  const seconds = more.seconds ?? bench.seconds
  const perSecond = server.port === bench.baseline.port ? baselinePerSecondMax : edgePerSecondMax
  await prepare(bench, perSecond * seconds)
  return measure(bench, server, {
    do: 'closed',
    port: server.port,
    connections,
    seconds,
  })
}

export async function prepare({ load, tenant }: Bench, requests: number): Promise<void> {
  const count = Math.ceil(requests)
  const { tenantId, secret } = tenant
  await load.request({ do: 'prepare', count, tenantId, secret } satisfies LoadOrder)
}

export async function measure(
  bench: Bench,
  server: { port: number; pid: number },
  order: LoadOrder,
): Promise<Run> {
  const natsPid = bench.rig.server.pid
  const before = [readCpuSeconds(server.pid), readCpuSeconds(natsPid)] as const
  const result = await bench.load.request<LoadResult>(order)
  const after = [readCpuSeconds(server.pid), readCpuSeconds(natsPid)] as const
  const ok = result.statuses[200] ?? 0
  if (server.port !== bench.baseline.port) bench.accepted += ok
  return {
    rate: ok / result.seconds,
    cpuUs: ((after[0] - before[0]) * 1e6) / ok,
    natsUs: ((after[1] - before[1]) * 1e6) / ok,
    p50: result.latencies[200]?.p50 ?? Number.NaN,
    p99: result.latencies[200]?.p99 ?? Number.NaN,
    result,
  }
}
