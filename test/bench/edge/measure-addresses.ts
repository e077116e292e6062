/**
 * An edge with network data beside one without: the events that it accepts, and its slowest answers
 * while all files are replaced and read again.
 */
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readMetric } from '../../support/process/read-metric.ts'
import type { MeasuredService } from '../measured-process.ts'
import { largeFiles, scaleFiles, writeNetworkFiles } from '../network/network-files.ts'
import { type Figure, single } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import {
  type Bench,
  connections,
  edgePerSecondMax,
  measure,
  portOf,
  type Run,
  startEdge,
} from './edge-bench.ts'
import type { LoadOrder } from './edge-load.ts'

/** More than the clients of an edge at one time. */
const addresses = 50_000
/** A file is read at the second look that finds it, within 30 s, and takes a while. */
const reloadSeconds = 45
/** Of what the edge can take, so that nothing waits for another reason. */
const reloadLoad = 0.3

/** @param share the part of an operator's networks that the files have */
export async function measureAddresses(bench: Bench, share: number): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-edge-network-'))
  let edge: MeasuredService | null = null
  try {
    const bytes = writeNetworkFiles(folder, scaleFiles(largeFiles, share))
    edge = await startEdge(bench.rig, { networkData: folder })
    const figures = await compareCapacity(bench, edge, bytes)
    return [...figures, ...(await reloadUnderLoad(bench, edge, folder))]
  } finally {
    await edge?.stop()
    rmSync(folder, { recursive: true })
  }
}

async function runFrom(bench: Bench, edge: MeasuredService, seconds: number): Promise<Run> {
  const { tenantId, secret } = bench.tenant
  const count = Math.ceil(edgePerSecondMax * seconds)
  await bench.load.request({ do: 'prepare', count, tenantId, secret, addresses })
  const port = portOf(edge.url)
  return measure(bench, { port, pid: edge.pid }, { do: 'closed', port, connections, seconds })
}

async function compareCapacity(
  bench: Bench,
  edge: MeasuredService,
  bytes: number,
): Promise<Figure[]> {
  await runFrom(bench, bench.edge, 2)
  await runFrom(bench, edge, 2)
  const without: Run[] = []
  const withData: Run[] = []
  for (let round = 0; round < bench.rounds; round++) {
    without.push(await runFrom(bench, bench.edge, bench.seconds))
    withData.push(await runFrom(bench, edge, bench.seconds))
  }
  const compare = (key: 'rate' | 'cpuUs') => {
    const [own, others] = [withData, without].map((runs) => runs.map((run) => run[key]))
    return {
      value: toSpread(own!),
      baseline: { name: 'without network data', value: toSpread(others!) },
      ratio: toRatios(own!, others!),
    }
  }
  return [
    {
      name: `accepted with network data (${(bytes / 2 ** 20).toFixed(0)} MiB), synced`,
      unit: 'events/s',
      ...compare('rate'),
      bound: { of: 'ratio', atLeast: 0.95 },
    },
    { name: 'CPU of an event with network data', unit: 'µs', ...compare('cpuUs') },
  ]
}

async function reloadUnderLoad(
  bench: Bench,
  edge: MeasuredService,
  folder: string,
): Promise<Figure[]> {
  const { rate } = await runFrom(bench, edge, 2)
  const run = async (): Promise<Run> => {
    const { tenantId, secret } = bench.tenant
    const seconds = reloadSeconds
    const count = Math.ceil(rate * reloadLoad * seconds)
    await bench.load.request({ do: 'prepare', count, tenantId, secret, addresses })
    const port = portOf(edge.url)
    const order: LoadOrder = { do: 'open', port, connections, seconds, rate: rate * reloadLoad }
    return measure(bench, { port, pid: edge.pid }, order)
  }
  const readFiles = () =>
    readMetric(edge.internalUrl, 'di_network_data_reads_total', { outcome: 'loaded' })
  const quiet = await run()
  const before = await readFiles()
  const names = readdirSync(folder)
  for (const name of names) {
    copyFileSync(join(folder, name), join(folder, `${name}.new`))
    renameSync(join(folder, `${name}.new`), join(folder, name))
  }
  const reloading = await run()
  const read = (await readFiles()) - before
  if (read !== names.length) throw new Error(`${read} of ${names.length} files were read again`)
  const slowest = ({ result }: Run) => result.latencies[200]!.max
  return [
    single('slowest answer, nothing is read', 'ms', slowest(quiet)),
    single('slowest answer while all files are read again', 'ms', slowest(reloading), 20),
    single('p99 of an answer, nothing is read', 'ms', quiet.p99),
    single('p99 of an answer while all files are read again', 'ms', reloading.p99),
  ]
}
