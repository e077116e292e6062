/**
 * Creates streams, buckets and consumers that were lost, as on a server whose store was emptied.
 * The server tells of one that is deleted; what is lost otherwise is found after a new connection
 * and every ten seconds. It runs in every console.
 */
import { Events, type Msg } from 'nats'
import { lostSubjects, telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import type { Nats } from '../connection.ts'
import { isClustered } from './ensure-streams.ts'
import { restoreStreams } from './restore-streams.ts'
import { consumerConfigs } from './stream-configs.ts'

type StreamKeeperOptions = {
  /** The connection; null before the first one. */
  findNats: () => Nats | null
  log: Log
  metrics: Metrics
}

const lostInCluster =
  'a cluster of NATS had no telemetry stream. If it had one before, what was accepted and not ' +
  'decided is lost unless a store still has it. A server that is started as a member of a ' +
  'cluster on the store of a single server removes what it finds there: see "From one server to ' +
  'three" in deploy/cluster/README.md'

/** How often to look, without a sign that something was lost: a look costs some ten requests. */
const sweepMs = 10_000
const retryMs = 250

/** Starts to look, until it is stopped. */
export function startStreamKeeper({ findNats, log, metrics }: StreamKeeperOptions): Poller {
  const restored = metrics.counter(
    'di_streams_restored_total',
    'Streams, buckets and consumers that were missing and were created again',
  )
  let watched: Nats | null = null
  let lost = new AbortController()
  let everyMs = retryMs
  const watch = (nats: Nats) => {
    watched = nats
    const look = () => lost.abort()
    const callback = (_error: Error | null, { subject }: Msg) => {
      if (isKept(subject)) look()
    }
    for (const subject of lostSubjects) nats.connection.subscribe(subject, { callback })
    void onReconnect(nats, look)
  }
  return startPolling(
    async (signal) => {
      everyMs = retryMs
      const nats = findNats()
      if (nats?.connected() !== true) return
      if (nats !== watched) watch(nats)
      lost = new AbortController()
      const created = await restoreStreams(nats)
      if (created.length > 0) {
        restored.inc(created.length)
        log.warn({ created }, 'streams or consumers were missing and were created again')
        const isTelemetryNew = created.includes(`stream ${telemetryStream}`)
        if (isTelemetryNew && isClustered(nats)) log.error(lostInCluster)
      }
      await pause(sweepMs, AbortSignal.any([signal, lost.signal]))
      everyMs = 0
    },
    {
      log,
      everyMs: () => everyMs,
      failure: 'lost streams cannot be looked for',
      logFromFailure: 10,
    },
  )
}

/** Whether what was deleted is a stream or a durable consumer, and not one of a reader. */
function isKept(subject: string): boolean {
  const [kind, , , consumer = ''] = subject.split('.').slice(3)
  return kind === 'STREAM' || consumer in consumerConfigs
}

async function onReconnect({ connection }: Nats, look: () => void): Promise<void> {
  for await (const { type } of connection.status()) if (type === Events.Reconnect) look()
}
