/**
 * `npm run bench -- edge [--rounds N] [--seconds S] [--only installs|registrations|network]
 * [--share S]`: the events that one ingest process accepts over 64 connections, beside a bare
 * node:http server that checks the same signatures and answers the same bytes; with JetStream
 * syncing before every acknowledgement and with its default; in batches of clients; signed with
 * install keys; with network data, while it is read again as well; with one publish per event;
 * under twice its load; beside a second process; and its p99 while installs register. At the end
 * every event with a 200 is counted in ClickHouse.
 */
import { parseArgs } from 'node:util'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { rootBytes } from '../../support/installs/install-roots.ts'
import { forkChild, readMemoryMb } from '../measured-process.ts'
import { type Check, type Figure, publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { compareBesideRegistrations } from './beside-registrations.ts'
import {
  type Bench,
  connections,
  edgePerSecondMax,
  measure,
  portOf,
  prepare,
  type Run,
  rootEpoch,
  runClosed,
  startBench,
  startEdge,
  stopBench,
} from './edge-bench.ts'
import { countStored } from './edge-check.ts'
import type { LoadOrder } from './edge-load.ts'
import { measureAddresses } from './measure-addresses.ts'

/** Nearly as many connections as one process accepts, and more than its limit of waiting events. */
const crowd = 8_000
/** Events of a client's batch, and more of them per second than an edge can handle. */
const batchEvents = 50
const batchedPerSecondMax = 80_000

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
      only: { type: 'string' },
      share: { type: 'string', default: '1' },
    },
  })
  const options = { rounds: Number(values.rounds), seconds: Number(values.seconds) }
  const figures: Figure[] = []
  const checks: Check[] = []
  let version = ''
  const { only } = values
  const share = Number(values.share)
  const does = (part: string) => only === undefined || only === part
  if (does('registrations')) {
    const beside = await compareBesideRegistrations(options)
    version = beside.version
    figures.push(...beside.figures)
    checks.push(...beside.checks)
  }
  const throughput = only === undefined ? [true, false] : only === 'registrations' ? [] : [true]
  for (const syncAlways of throughput) {
    const bench = await startBench(options, syncAlways)
    version = bench.rig.server.version
    try {
      if (does('baseline')) figures.push(...(await compareWithBaseline(bench, syncAlways)))
      if (syncAlways && does('installs')) figures.push(...(await signWithInstallKeys(bench)))
      if (syncAlways && does('network')) figures.push(...(await measureAddresses(bench, share)))
      if (syncAlways && only === undefined) {
        figures.push(...(await sendBatches(bench)))
        figures.push(await publishSingly(bench))
        figures.push(...(await overload(bench)))
        figures.push(await sideBySide(bench))
      }
      checks.push(await checkStored(bench, syncAlways))
    } finally {
      await stopBench(bench)
    }
  }
  publishReport({
    part: only === undefined ? 'edge' : `edge ${only}`,
    command:
      `npm run bench -- edge --rounds ${options.rounds} --seconds ${options.seconds}` +
      (only === undefined ? '' : ` --only ${only}`) +
      (share === 1 ? '' : ` --share ${share}`),
    versions: { nats: version },
    durability: 'nats sync_interval: always, unless noted',
    figures,
    checks,
  })
}

async function compareWithBaseline(bench: Bench, syncAlways: boolean): Promise<Figure[]> {
  const edge = { port: portOf(bench.edge.url), pid: bench.edge.pid }
  // Both are compiled and have grown to their size before the measurement.
  await runClosed(bench, bench.baseline, { seconds: 1 })
  await runClosed(bench, edge, { seconds: 2 })
  const baselines: Run[] = []
  const runs: Run[] = []
  for (let round = 0; round < bench.rounds; round++) {
    baselines.push(await runClosed(bench, bench.baseline))
    runs.push(await runClosed(bench, edge))
  }
  const of = (list: readonly Run[], key: 'rate' | 'cpuUs' | 'p99' | 'natsUs') =>
    list.map((one) => one[key])
  const compare = (key: 'rate' | 'cpuUs' | 'p99') => ({
    value: toSpread(of(runs, key)),
    baseline: { name: 'bare node:http', value: toSpread(of(baselines, key)) },
    ratio: toRatios(of(runs, key), of(baselines, key)),
  })
  const mode = syncAlways ? 'synced' : 'default sync'
  const throughput: Figure = {
    name: `accepted, ${mode}`,
    unit: 'events/s',
    ...compare('rate'),
    bound: { of: 'ratio', atLeast: 0.45 },
  }
  const latency: Figure = {
    name: `p99 of an answer, ${mode}`,
    unit: 'ms',
    ...compare('p99'),
    bound: { of: 'ratio', atMost: 4 },
  }
  const cpu: Figure = {
    name: `CPU of an accepted event, ${mode}`,
    unit: 'µs',
    ...compare('cpuUs'),
    bound: { of: 'ratio', atMost: 2.2 },
  }
  const nats: Figure = {
    name: `nats-server's CPU for it, ${mode}`,
    unit: 'µs',
    value: toSpread(of(runs, 'natsUs')),
  }
  return [throughput, latency, cpu, nats]
}

/** Events with a token, signed with the key of their install, beside those of the secret. */
async function signWithInstallKeys(bench: Bench): Promise<Figure[]> {
  const { tenantId, secret } = bench.tenant
  const { port } = new URL(bench.edge.url)
  const edge = { port: Number(port), pid: bench.edge.pid }
  const { seconds } = bench
  const root = { epoch: rootEpoch, bytes: rootBytes(rootEpoch).toString('base64') }
  const runInstalls = async (forSeconds: number, more: { evidenceEvery?: number } = {}) => {
    const count = Math.ceil(edgePerSecondMax * forSeconds)
    const order = { do: 'prepare', count, tenantId, secret, root, ...more } as const
    await bench.load.request(order satisfies LoadOrder)
    const closed = { do: 'closed', port: edge.port, connections, seconds: forSeconds } as const
    return measure(bench, edge, closed)
  }
  await runClosed(bench, edge, { seconds: 2 })
  await runInstalls(2)
  const bySecret: Run[] = []
  const byInstall: Run[] = []
  const withEvidence: Run[] = []
  for (let round = 0; round < bench.rounds; round++) {
    bySecret.push(await runClosed(bench, edge))
    byInstall.push(await runInstalls(seconds))
    withEvidence.push(await runInstalls(seconds, { evidenceEvery: 10 }))
  }
  const compare = (runs: readonly Run[], key: 'rate' | 'cpuUs') => {
    const [own, others] = [runs, bySecret].map((list) => list.map((one) => one[key]))
    return {
      value: toSpread(own!),
      baseline: { name: 'the secret of the tenant', value: toSpread(others!) },
      ratio: toRatios(own!, others!),
    }
  }
  return [
    {
      name: 'accepted with install keys, synced',
      unit: 'events/s',
      ...compare(byInstall, 'rate'),
      bound: { of: 'ratio', atLeast: 0.85 },
    },
    { name: 'CPU of an event with an install key', unit: 'µs', ...compare(byInstall, 'cpuUs') },
    {
      name: 'one in ten with a signature of the attested key',
      unit: 'events/s',
      ...compare(withEvidence, 'rate'),
      bound: { of: 'ratio', atLeast: 0.7 },
    },
  ]
}

/** Bodies with many events over a few connections, beside the same events alone. */
async function sendBatches(bench: Bench): Promise<Figure[]> {
  const edge = { port: portOf(bench.edge.url), pid: bench.edge.pid }
  const { tenantId, secret } = bench.tenant
  const rates: number[] = []
  const costs: number[] = []
  const alone: Run[] = []
  for (let round = 0; round < Math.ceil(bench.rounds / 2); round++) {
    alone.push(await runClosed(bench, edge))
    const count = Math.ceil((batchedPerSecondMax * bench.seconds) / batchEvents)
    const order = { do: 'prepare', count, tenantId, secret, batch: batchEvents } as const
    await bench.load.request(order satisfies LoadOrder)
    const { port } = edge
    const { seconds } = bench
    const run = await measure(bench, edge, { do: 'closed', port, connections: 8, seconds })
    // Each answer is of a whole batch.
    bench.accepted += (run.result.statuses[200] ?? 0) * (batchEvents - 1)
    rates.push(run.rate * batchEvents)
    costs.push(run.cpuUs / batchEvents)
  }
  const of = (key: 'rate' | 'cpuUs') => alone.map((one) => one[key])
  const toBaseline = (values: number[]) => ({ name: 'each alone', value: toSpread(values) })
  return [
    {
      name: `accepted in batches of ${batchEvents}, synced`,
      unit: 'events/s',
      value: toSpread(rates),
      baseline: toBaseline(of('rate')),
      ratio: toRatios(rates, of('rate')),
    },
    {
      name: `CPU of an event in a batch of ${batchEvents}`,
      unit: 'µs',
      value: toSpread(costs),
      baseline: toBaseline(of('cpuUs')),
      ratio: toRatios(costs, of('cpuUs')),
    },
  ]
}

/** The same edge with one publish per event. */
async function publishSingly(bench: Bench): Promise<Figure> {
  const { worker: single } = await forkChild('./edge/edge-single.ts')
  const { rig } = bench
  const port = await single.request<number>({
    natsUrl: rig.server.urlOf('ingest'),
    masterKey: rig.masterKey,
  })
  const other = { port, pid: single.child.pid! }
  const edge = { port: portOf(bench.edge.url), pid: bench.edge.pid }
  await runClosed(bench, other, { seconds: 1 })
  const together: Run[] = []
  const singly: Run[] = []
  for (let round = 0; round < Math.ceil(bench.rounds / 2); round++) {
    together.push(await runClosed(bench, edge))
    singly.push(await runClosed(bench, other))
  }
  single.stop()
  const rates = (list: Run[]) => list.map(({ rate }) => rate)
  return {
    name: 'the same with one publish an event, synced',
    unit: 'events/s',
    value: toSpread(rates(singly)),
    baseline: { name: 'many together', value: toSpread(rates(together)) },
    ratio: toRatios(rates(singly), rates(together)),
  }
}

/** Twice its capacity from many connections; then at once the usual load. */
async function overload(bench: Bench): Promise<Figure[]> {
  const edge = { port: portOf(bench.edge.url), pid: bench.edge.pid }
  const accepted: number[] = []
  const capacity: number[] = []
  const recovered: number[] = []
  const waits: number[] = []
  const refusedWaits: number[] = []
  let refused = 0
  let others = 0
  for (let round = 0; round < bench.rounds; round++) {
    const before = await runClosed(bench, edge)
    await prepare(bench, before.rate * 2 * bench.seconds)
    const during = await measure(bench, edge, {
      do: 'open',
      port: edge.port,
      connections: crowd,
      seconds: bench.seconds,
      rate: before.rate * 2,
    })
    const after = await runClosed(bench, edge, { seconds: 1 })
    capacity.push(before.rate)
    accepted.push(during.rate)
    recovered.push(after.rate)
    waits.push(during.p99)
    refusedWaits.push(during.result.latencies[503]?.p99 ?? 0)
    refused += during.result.statuses[503] ?? 0
    const all = Object.values(during.result.statuses).reduce((sum, count) => sum + count, 0)
    others += all - (during.result.statuses[200] ?? 0) - (during.result.statuses[503] ?? 0)
  }
  const baseline = { name: 'at capacity', value: toSpread(capacity) }
  return [
    {
      name: `accepted at twice the load, ${crowd} connections`,
      unit: 'events/s',
      value: toSpread(accepted),
      baseline,
      ratio: toRatios(accepted, capacity),
      bound: { of: 'ratio', atLeast: 0.6 },
    },
    { name: 'p99 of those', unit: 'ms', value: toSpread(waits) },
    {
      name: `p99 of the 503s beside them (${refused} in all, ${others} other answers)`,
      unit: 'ms',
      value: toSpread(refusedWaits),
    },
    {
      name: 'accepted in the second after it',
      unit: 'events/s',
      value: toSpread(recovered),
      baseline,
      ratio: toRatios(recovered, capacity),
      bound: { of: 'ratio', atLeast: 0.9 },
    },
    {
      name: 'memory of the edge at its most',
      unit: 'MB',
      value: toSpread([readMemoryMb(bench.edge.pid).peak]),
    },
  ]
}

/** Two processes on one port: the kernel distributes the connections. */
async function sideBySide(bench: Bench): Promise<Figure> {
  const edge = { port: portOf(bench.edge.url), pid: bench.edge.pid }
  const port = await choosePort({})
  const pair = [
    await startEdge(bench.rig, { sharedPort: port }),
    await startEdge(bench.rig, { sharedPort: port }),
  ]
  const both = { port, pid: pair[0]!.pid }
  await runClosed(bench, both, { seconds: 2 })
  const one: number[] = []
  const two: number[] = []
  for (let round = 0; round < Math.ceil(bench.rounds / 2); round++) {
    one.push((await runClosed(bench, edge)).rate)
    two.push((await runClosed(bench, both)).rate)
  }
  await Promise.all(pair.map((process) => process.stop()))
  return {
    name: 'two edges on one port, the load on the same cores',
    unit: 'events/s',
    value: toSpread(two),
    baseline: { name: 'one', value: toSpread(one) },
    ratio: toRatios(two, one),
  }
}

async function checkStored(bench: Bench, syncAlways: boolean): Promise<Check> {
  const rows = await countStored(bench.rig)
  return {
    name: `answered 200 is in ClickHouse, ${syncAlways ? 'synced' : 'default sync'}`,
    ok: rows === bench.accepted,
    detail: `${bench.accepted} answered, ${rows} rows`,
  }
}
