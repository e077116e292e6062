/**
 * The service on three nats-servers under load while they are killed and cut off. Then everything
 * is read back: each accepted event must be in the stream, in ClickHouse and, when it raises an
 * alert, in Postgres exactly once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { type ClusterFault, type InjectedFault, injectFault } from './faults.ts'
import { type FleetLoad, startFleetLoad, type Try } from './load.ts'
import { type Stored, startClusterRig } from './rig.ts'

export type ClusterRunOptions = {
  seed: number
  /** In this order, each for `lastsMs`. */
  faults: readonly { fault: ClusterFault; lastsMs: number }[]
  /** Events per second. */
  rate: number
  /** Between two faults. */
  calmMs: number
  onFault?: (injected: InjectedFault) => void
}

export type ClusterRun = {
  events: number
  tries: Try[]
  injected: InjectedFault[]
  leaderChanges: number
  /** Publishes that edges retried, and retries of batches that were already stored. */
  retriedPublishes: number
  duplicatePublishes: number
  redeliveries: number
  /** Times that the scorer took the stream for one that was put back. */
  putBacks: number
  findings: ClusterFindings
  rotationMs: number
}

export type ClusterFindings = {
  accepted: number
  /** Events that no edge accepted. */
  unaccepted: number
  notInStream: string[]
  notInClickhouse: string[]
  /** Accepted events whose expected alert is missing. */
  alertMissing: string[]
  alertTwice: string[]
  /** Alerts of sessions that were not sent. */
  alertUnknown: string[]
  seqGaps: number
  /** Events in two messages: a client without a 200 sends again. */
  storedTwice: number
}

const finishLimitMs = 60_000

/** @throws before any fault when a stream or bucket is not on three servers */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterRun> {
  const { next: random } = createRandom(options.seed, 'cluster')
  const rig = await startClusterRig()
  try {
    const unreplicated = await rig.listUnreplicated()
    if (unreplicated.length > 0) throw new Error(`not on three servers: ${unreplicated.join(', ')}`)
    const load = startFleetLoad({
      urls: rig.edgeUrls,
      tenantId: rig.tenantId,
      secret: rig.secret,
      ratePerSecond: options.rate,
      random,
    })
    const injected: InjectedFault[] = []
    try {
      for (const { fault, lastsMs } of options.faults) {
        await pause(options.calmMs)
        const one = await injectFault(rig, fault, lastsMs, random)
        injected.push(one)
        options.onFault?.(one)
      }
      await pause(options.calmMs)
    } catch (error) {
      // Otherwise its clients retry without end.
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
      injected,
      leaderChanges: injected.filter((one) => one.leaderBefore !== one.leaderAfter).length,
      retriedPublishes: await rig.sumEdges('di_ingest_publish_retries_total'),
      duplicatePublishes: await rig.sumEdges('di_ingest_publish_duplicates_total'),
      redeliveries: await rig.sumScorer('di_consume_redelivered_total'),
      putBacks: await rig.sumScorer('di_stream_put_back_total'),
      rotationMs: performance.now() - rotatedMs,
      findings: classify(load, await rig.readStored()),
    }
  } finally {
    await rig.stop()
  }
}

/** Compares the clients' responses with the stores. */
function classify({ sent }: Pick<FleetLoad, 'sent'>, stored: Stored): ClusterFindings {
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
