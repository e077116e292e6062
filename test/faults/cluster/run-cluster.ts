/**
 * The service on three nats-servers under load while they are killed and cut off, then everything
 * is read back: what was accepted must be in the stream, in ClickHouse and, where it deserves an
 * alert, in Postgres exactly once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { type ClusterFault, type Suffered, suffer } from './faults.ts'
import { type FleetLoad, startFleetLoad, type Try } from './load.ts'
import { type Stored, startClusterRig } from './rig.ts'

export type ClusterRunOptions = {
  seed: number
  /** In their order, each for so long. */
  faults: readonly { fault: ClusterFault; lastsMs: number }[]
  /** Events per second. */
  rate: number
  /** Between two faults. */
  calmMs: number
  onFault?: (suffered: Suffered) => void
}

export type ClusterRun = {
  events: number
  tries: Try[]
  suffered: Suffered[]
  leaderChanges: number
  /** Of the edges: publishes tried again, and those that turned out to be stored already. */
  retriedPublishes: number
  duplicatePublishes: number
  redeliveries: number
  findings: ClusterFindings
  rotationMs: number
}

export type ClusterFindings = {
  accepted: number
  /** Events nobody accepted in the end. */
  unaccepted: number
  notInStream: string[]
  notInClickhouse: string[]
  /** Accepted events that deserve an alert and have none. */
  alertMissing: string[]
  alertTwice: string[]
  /** Alerts of events that nobody was sent. */
  alertUnknown: string[]
  seqGaps: number
  /** Events in two messages: sent again by a client that had no 200. */
  storedTwice: number
}

const finishLimitMs = 60_000

/** @throws before any fault when a stream or bucket is not on three servers */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterRun> {
  const { random } = toChance(options.seed)
  const rig = await startClusterRig()
  try {
    const thin = await rig.listThin()
    if (thin.length > 0) throw new Error(`not on three servers: ${thin.join(', ')}`)
    const load = startFleetLoad({
      urls: rig.edgeUrls,
      tenantId: rig.tenantId,
      secret: rig.secret,
      rate: options.rate,
      random,
    })
    const suffered: Suffered[] = []
    try {
      for (const { fault, lastsMs } of options.faults) {
        await pause(options.calmMs)
        const one = await suffer(rig, fault, lastsMs, random)
        suffered.push(one)
        options.onFault?.(one)
      }
      await pause(options.calmMs)
    } catch (error) {
      // Or its clients would go on for ever.
      await load.finish(0)
      throw error
    }
    await load.finish(finishLimitMs)
    await rig.drained(finishLimitMs)
    const rotatedMs = performance.now()
    await rig.rotate()
    return {
      events: load.sent.length,
      tries: load.tries,
      suffered,
      leaderChanges: suffered.filter((one) => one.leaderBefore !== one.leaderAfter).length,
      retriedPublishes: await rig.sumEdges('di_ingest_publish_retries_total'),
      duplicatePublishes: await rig.sumEdges('di_ingest_publish_duplicates_total'),
      redeliveries: await rig.sumScorer('di_consume_redelivered_total'),
      rotationMs: performance.now() - rotatedMs,
      findings: classify(load, await rig.readStored()),
    }
  } finally {
    await rig.stop()
  }
}

const toChance = (seed: number) => ({ random: createRandom(seed, 'cluster').next })

/** Compares what clients were told with what is there. */
export function classify({ sent }: Pick<FleetLoad, 'sent'>, stored: Stored): ClusterFindings {
  const accepted = sent.filter(({ eventId }) => eventId !== null)
  const ids = accepted.map(({ eventId }) => eventId!)
  const sessions = new Set(sent.filter(({ blocked }) => blocked).map(({ sessionId }) => sessionId))
  const gaps = stored.seqs.filter((seq, at) => seq !== at + 1).length
  return {
    accepted: accepted.length,
    unaccepted: sent.length - accepted.length,
    notInStream: ids.filter((id) => !stored.inStream.has(id)),
    notInClickhouse: ids.filter((id) => !stored.inClickhouse.has(id)),
    alertMissing: accepted
      .filter(({ blocked, sessionId }) => blocked && !stored.alerts.has(sessionId))
      .map(({ sessionId }) => sessionId),
    alertTwice: [...stored.alerts].filter(([, count]) => count > 1).map(([id]) => id),
    alertUnknown: [...stored.alerts.keys()].filter((id) => !sessions.has(id)),
    seqGaps: gaps,
    storedTwice: [...stored.inStream.values()].filter((count) => count > 1).length,
  }
}
