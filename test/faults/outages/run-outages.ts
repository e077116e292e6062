/**
 * The service under steady load while its servers are away, one after the other or two at once.
 * Nobody starts anything again by hand; what became of every submission is read back at the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import { SERVER_NAMES, SERVICE_NAMES } from '../../../deploy/local/stack/settings.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { until } from '../../support/process/until.ts'
import { type OutageLoad, startOutageLoad } from './load.ts'
import type { Outage } from './outage-kinds.ts'
import { checkOutages, type OutageFindings } from './read-back.ts'
import { type Probes, startProbes } from './readiness-probes.ts'
import { type OutageRig, startOutageRig } from './rig.ts'

export type Suffered = {
  outage: Outage
  /** On the monotonic clock: when it was begun, when it was in force, and when its end began. */
  begunMs: number
  inForceMs: number
  endedMs: number
  /** When every store could be written to again and telemetry was taken. */
  recoveredMs: number
  /** When everything taken was stored and decided, or was given up on. */
  drainedMs: number
  drained: boolean
  /** Until when nothing else was done. */
  calmUntilMs: number
  /** Messages that waited for the scorer when it was over. */
  lag: number
  /** Whether all processes were ready within five seconds of the recovery. */
  readyAgain: boolean
  /** Starts by the supervisor during it. */
  restarts: Record<string, number>
  /** Bytes that were taken of a disk. */
  taken: number
}

export type OutagesResult = {
  suffered: Suffered[]
  calls: OutageLoad['calls']
  probes: Probes['seen']
  findings: OutageFindings
}

export type OutagesOptions = {
  outages: readonly Outage[]
  /** Of their full length. */
  scale: number
  ratePerSecond: number
  /** Between an outage and the next: long enough for readiness to be looked at. */
  calmMs: number
  onOutage?: (suffered: Suffered, seen: Pick<OutagesResult, 'calls' | 'probes'>) => void
}

const nowMs = () => performance.now()
/** Longer than any outage may have consequences: the supervisor's longest pause, and recoveries. */
const recoverLimitMs = 60_000
const drainLimitMs = 120_000
const tenantId = 'outages'

/** Runs it all, on servers of its own. */
export async function runOutages(options: OutagesOptions): Promise<OutagesResult> {
  const smallDisks = options.outages.some(({ name }) => name.includes('disk-'))
  const rig = await startOutageRig({ smallDisks })
  const receiver = await startReceiver()
  try {
    const tenant = await rig.admin('/tenants', {
      tenant_id: tenantId,
      environment: 'sandbox',
      webhook_url: receiver.url,
    })
    await rig.clickhouse.command({
      query: 'create table if not exists drill (n UInt8) engine = MergeTree order by n',
    })
    await rig.postgres.query('create table if not exists drill (n int)')
    const apiKey = String(tenant.public_api_key)
    const load = startOutageLoad({
      ingestUrl: rig.urls.ingest,
      apiUrl: rig.urls.api,
      apiKey,
      signer: { tenantId, secret: String(tenant.hmac_secret) },
      ratePerSecond: options.ratePerSecond,
    })
    const probes = startProbes(rig.internalUrls)
    const suffered: Suffered[] = []
    try {
      await until('telemetry flows', () => load.accepted.size > 20)
      for (const outage of options.outages) {
        const one = await suffer({ rig, load, probes, options }, outage)
        suffered.push(one)
        options.onOutage?.(one, { calls: load.calls, probes: probes.seen })
      }
    } finally {
      await load.stop()
      await probes.stop()
    }
    const findings = await checkOutages(rig, { load, receiver, tenantId, apiKey })
    return { suffered, calls: load.calls, probes: probes.seen, findings }
  } finally {
    await rig.stop()
    await receiver.close()
  }
}

/** What is sent again of what failed. */
const againMax = 200
/** Readiness is the truth after this. */
export const truthWithinMs = 5_000

type World = { rig: OutageRig; load: OutageLoad; probes: Probes; options: OutagesOptions }

async function suffer(world: World, outage: Outage): Promise<Suffered> {
  const { rig, load, probes, options } = world
  const lastsMs = outage.lastsMs * options.scale
  const before = countRestarts(rig)
  const begunMs = nowMs()
  await outage.begin(rig)
  const inForceMs = nowMs()
  await pause(lastsMs)
  const endedMs = nowMs()
  const taken = await outage.end(rig)
  await recovered(rig, load)
  const recoveredMs = nowMs()
  const lag = await countLag(rig)
  const readyAgain = allReady(probes, recoveredMs)
  await load.sendAgain(againMax)
  // What begins to wait meanwhile is newer than what the outage left.
  const { state } = await rig.nats.manager.streams.info(telemetryStream)
  const isDrained = () => isDecided(rig, state.last_seq)
  const drained = await until('the backlog is worked off', isDrained, drainLimitMs).then(
    () => true,
    () => false,
  )
  const drainedMs = nowMs()
  await pause(Math.max(0, recoveredMs + options.calmMs - drainedMs))
  const after = countRestarts(rig)
  return {
    outage,
    begunMs,
    inForceMs,
    endedMs,
    recoveredMs,
    drainedMs,
    drained,
    lag,
    calmUntilMs: nowMs(),
    restarts: Object.fromEntries(
      Object.entries(after).map(([name, count]) => [name, count - before[name]!]),
    ),
    readyAgain: await readyAgain,
    taken: typeof taken === 'number' ? taken : 0,
  }
}

/** Whether the latest word of each process since then is that it is ready, in good time. */
function allReady({ seen }: Probes, sinceMs: number): Promise<boolean> {
  const isReady = (name: string) => {
    const latest = seen.findLast((probe) => probe.name === name)
    return latest?.ready === true && latest.begunMs > sinceMs
  }
  const ready = until('all are ready', () => SERVICE_NAMES.every(isReady), truthWithinMs)
  return ready.then(
    () => true,
    () => false,
  )
}

/** Until telemetry is taken again and each database takes a row. */
async function recovered(rig: OutageRig, load: OutageLoad): Promise<void> {
  const sinceMs = nowMs()
  const flows = () =>
    load.calls.slice(-500).filter(({ begunMs, kind, outcome }) => {
      return kind === 'submit' && outcome === 'ok' && begunMs >= sinceMs
    }).length >= 5
  await Promise.all([
    until('telemetry is taken', flows, recoverLimitMs),
    until('Postgres takes a row', () => writesPostgres(rig), recoverLimitMs),
    until('ClickHouse takes a row', () => writesClickhouse(rig), recoverLimitMs),
  ])
}

async function writesPostgres({ postgres }: OutageRig): Promise<boolean> {
  await postgres.query('insert into drill values (1)')
  return true
}

async function writesClickhouse({ clickhouse }: OutageRig): Promise<boolean> {
  await clickhouse.insert({ table: 'drill', values: [{ n: 1 }], format: 'JSONEachRow' })
  return true
}

async function countLag({ nats }: OutageRig): Promise<number> {
  const info = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
  return info.num_pending + info.num_ack_pending
}

async function isDecided({ nats }: OutageRig, seq: number): Promise<boolean> {
  for (const durable of [scorerConsumer, deciderConsumer]) {
    const info = await nats.manager.consumers.info(telemetryStream, durable)
    if (info.ack_floor.stream_seq < seq) return false
  }
  return true
}

function countRestarts({ servers, services }: OutageRig): Record<string, number> {
  return Object.fromEntries([
    ...SERVER_NAMES.map((name) => [name, servers[name].restarts()] as const),
    ...SERVICE_NAMES.map((name) => [name, services[name].restarts()] as const),
  ])
}
