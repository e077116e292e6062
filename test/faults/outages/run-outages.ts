/**
 * The service under steady load during outages of its servers, one after the other or two at once.
 * It recovers without help; everything is read back at the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { scorerConsumer, telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import {
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServiceName,
} from '../../../deploy/local/stack/settings.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { until } from '../../support/process/until.ts'
import { readProgress } from '../../support/telemetry/read-stream.ts'
import { type OutageLoad, startOutageLoad } from './load.ts'
import type { Outage } from './outage-kinds.ts'
import { type OutageFindings, readBackOutages } from './read-back.ts'
import { type Probes, startProbes } from './readiness-probes.ts'
import { type OutageRig, startOutageRig } from './rig.ts'

export type InjectedOutage = {
  outage: Outage
  /** On the monotonic clock: its start, when it took effect, and the start of its end. */
  begunMs: number
  inForceMs: number
  endedMs: number
  /** When every store accepted writes and the edge accepted telemetry. */
  recoveredMs: number
  /** When the backlog was acknowledged, or the limit had passed. */
  drainedMs: number
  drained: boolean
  /** The start of the next step. */
  calmUntilMs: number
  /** Messages that waited for the scorer at the recovery. */
  lag: number
  /** Whether all processes were ready within `readyWithinMs` of the recovery. */
  readyAgain: boolean
  /** Starts by the supervisor during the outage. */
  restarts: Record<string, number>
  /** Bytes that filled a disk. */
  filledBytes: number
}

export type OutagesResult = {
  injected: InjectedOutage[]
  calls: OutageLoad['calls']
  probes: Probes['seen']
  findings: OutageFindings
}

export type OutagesOptions = {
  outages: readonly Outage[]
  /** Factor of their full length. */
  scale: number
  ratePerSecond: number
  /** Between two outages, long enough to check readiness. */
  calmMs: number
  /** All processes are ready this long after the recovery. */
  readyWithinMs: number
  /**
   * Whether an outage lasts until each process says what it must of it, however slow the machine
   * is. Without it each has five seconds to notice.
   */
  untilNoticed?: boolean
  onOutage?: (injected: InjectedOutage, seen: Pick<OutagesResult, 'calls' | 'probes'>) => void
}

const nowMs = () => performance.now()
/** The supervisor's longest pause and the servers' own recovery. */
const recoverLimitMs = 60_000
const drainLimitMs = 120_000
const tenantId = 'outages'

/** Runs all outages on its own servers. */
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
    const injected: InjectedOutage[] = []
    try {
      await until('telemetry flows', () => load.accepted.size > 20)
      for (const outage of options.outages) {
        const one = await injectOutage({ rig, load, probes, options }, outage)
        injected.push(one)
        options.onOutage?.(one, { calls: load.calls, probes: probes.seen })
      }
    } finally {
      await load.stop()
      await probes.stop()
    }
    const findings = await readBackOutages(rig, { load, receiver, tenantId, apiKey })
    return { injected, calls: load.calls, probes: probes.seen, findings }
  } finally {
    await rig.stop()
    await receiver.close()
  }
}

/** At most this number of failed submissions is sent again. */
const againMax = 200
type Deps = { rig: OutageRig; load: OutageLoad; probes: Probes; options: OutagesOptions }

async function injectOutage(deps: Deps, outage: Outage): Promise<InjectedOutage> {
  const { rig, load, probes, options } = deps
  const lastsMs = outage.lastsMs * options.scale
  const before = countRestarts(rig)
  const begunMs = nowMs()
  await outage.begin(rig)
  const inForceMs = nowMs()
  await pause(lastsMs)
  if (options.untilNoticed) await noticed(probes, outage, inForceMs)
  const endedMs = nowMs()
  const filled = await outage.end(rig)
  await recovered(rig, load)
  const recoveredMs = nowMs()
  const lag = await countLag(rig)
  const readyAgain = allReady(probes, recoveredMs, options.readyWithinMs)
  await load.sendAgain(againMax)
  // Later messages are not part of the outage's backlog.
  const { state } = await rig.nats.manager.streams.info(telemetryStream)
  const isDrained = async () => (await readProgress(rig.nats)).acknowledged >= state.last_seq
  const drained = await until('the backlog is acknowledged', isDrained, drainLimitMs).then(
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
    filledBytes: typeof filled === 'number' ? filled : 0,
  }
}

/** Waits until the latest probe of each process is as expected during the outage. */
async function noticed(probes: Probes, { expected }: Outage, sinceMs: number): Promise<void> {
  const says = (name: ServiceName) =>
    expected.ready[name] === null || isReady(probes, name, sinceMs) === expected.ready[name]
  await until('each process says whether it is ready', () => SERVICE_NAMES.every(says))
}

/** What the latest probe of a process says, null for none since that time. */
function isReady({ seen }: Probes, name: ServiceName, sinceMs: number): boolean | null {
  const latest = seen.findLast((probe) => probe.name === name)
  return latest !== undefined && latest.begunMs > sinceMs ? latest.ready : null
}

/** Whether the latest probe of each process is ready within the time limit. */
function allReady(probes: Probes, sinceMs: number, limitMs: number): Promise<boolean> {
  const are = () => SERVICE_NAMES.every((name) => isReady(probes, name, sinceMs))
  const ready = until('all are ready', are, limitMs)
  return ready.then(
    () => true,
    () => false,
  )
}

/** Waits until telemetry is accepted and each database accepts a row. */
async function recovered(rig: OutageRig, load: OutageLoad): Promise<void> {
  const sinceMs = nowMs()
  const flows = () =>
    load.calls.slice(-500).filter(({ begunMs, kind, outcome }) => {
      return kind === 'submit' && outcome === 'ok' && begunMs >= sinceMs
    }).length >= 5
  await Promise.all([
    until('telemetry is accepted', flows, recoverLimitMs),
    until('Postgres accepts a row', () => writesPostgres(rig), recoverLimitMs),
    until('ClickHouse accepts a row', () => writesClickhouse(rig), recoverLimitMs),
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

function countRestarts({ servers, services }: OutageRig): Record<string, number> {
  return Object.fromEntries([
    ...SERVER_NAMES.map((name) => [name, servers[name].restarts()] as const),
    ...SERVICE_NAMES.map((name) => [name, services[name].restarts()] as const),
  ])
}
