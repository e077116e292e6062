/**
 * Two checks of a power cut on real processes under load: the order of system calls behind each
 * 200, and the content of the store without everything after the last sync.
 */
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { postTelemetry } from '../../support/http/send-request.ts'
import { until } from '../../support/process/until.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import {
  type EdgeRig,
  quietLog,
  startEdgeRig,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'
import { validBody } from '../../support/telemetry/raw-submissions.ts'
import { readEvents } from '../../support/telemetry/read-stream.ts'
import { createDurableStore } from './durable-store.ts'
import { judgeOrder, type OrderFindings } from './sync-order.ts'
import { readTrace, trace } from './system-calls.ts'

export type OrderRun = OrderFindings & { requests: number; accepted: number }

export type CutRun = {
  accepted: number
  /** Events in the store after the cut. */
  left: number
  /** Accepted events that are not among them. */
  lost: string[]
  syncs: number
  files: number
  lostFiles: number
  lostBytes: number
}

export type PowerOptions = {
  /** False: the server's own default, a sync every two minutes. */
  syncAlways: boolean
}

const clients = 32

/** @param options.requests how many to send, over 32 connections */
export async function runOrder(options: PowerOptions & { requests: number }): Promise<OrderRun> {
  return await withRig(options, async (rig, tenant, dir) => {
    const edge = await rig.spawnEdge()
    const file = join(dir, 'trace')
    const tracer = await trace([rig.server.pid, edge.child.pid!], file)
    const load = startClients(edge.url, tenant, options.requests)
    await load.done
    // The edge serves this after its last traced write has been recorded.
    await fetch(`${edge.url}/healthz`)
    await tracer.end()
    const findings = await judgeOrder(readTrace(file), Number(new URL(edge.url).port))
    return { ...findings, requests: options.requests, accepted: load.accepted.size }
  })
}

/** @param options.afterMs the time under load before the cut */
export async function runCut(options: PowerOptions & { afterMs: number }): Promise<CutRun> {
  return await withRig(options, async (rig, tenant, dir) => {
    const file = join(dir, 'trace')
    const tracer = await trace([rig.server.pid], file)
    const store = createDurableStore(join(rig.server.dir, 'jetstream'))
    const edge = await rig.spawnEdge()
    const load = startClients(edge.url, tenant, Number.POSITIVE_INFINITY)
    await until('telemetry flows', () => load.accepted.size > clients)
    await pause(options.afterMs)
    await rig.server.kill('SIGKILL')
    await load.stop()
    await tracer.end()
    for await (const call of readTrace(file)) store.apply(call)
    const left = join(dir, 'left')
    const { lostBytes, lostFiles, files } = store.restore(join(left, 'jetstream'))
    const stored = await readStore(left, options)
    return {
      accepted: load.accepted.size,
      left: stored.size,
      lost: [...load.accepted].filter((eventId) => !stored.has(eventId)),
      syncs: store.syncs(),
      files,
      lostFiles,
      lostBytes,
    }
  })
}

async function withRig<T>(
  options: PowerOptions,
  work: (rig: EdgeRig, tenant: TestTenant, dir: string) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'di-power-'))
  const rig = await startEdgeRig(options)
  try {
    return await work(rig, await rig.projectTenant('power'), dir)
  } finally {
    await rig.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

type Clients = { accepted: Set<string>; done: Promise<void>; stop: () => Promise<void> }

/** Each client sends its requests in sequence, each once. */
function startClients(url: string, tenant: TestTenant, requests: number): Clients {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const accepted = new Set<string>()
  let left = requests
  const client = async () => {
    while (left-- > 0) {
      const body = JSON.stringify(validBody(tenant.tenantId))
      const { secret } = tenant
      const { eventId } = await postTelemetry(url, { agent, body, secret, limitMs: 60_000 })
      if (eventId !== null) accepted.add(eventId)
    }
  }
  const done = Promise.all(Array.from({ length: clients }, client)).then(() => agent.destroy())
  return {
    accepted,
    done,
    stop: async () => {
      left = 0
      await done
    },
  }
}

/** Starts a server on a store and reads every event of the stream, none when the stream is gone. */
async function readStore(dir: string, { syncAlways }: PowerOptions): Promise<Set<string>> {
  const server = await startNats({ dir, syncAlways })
  const nats = await connectNats(server.url, 'test', quietLog)
  try {
    const isGone = await nats.manager.streams.info(telemetryStream).then(
      () => false,
      (error: { code?: string }) => {
        if (error.code === '404') return true
        throw error
      },
    )
    const events = isGone ? [] : await readEvents(nats)
    return new Set(events.map(({ event_id }) => event_id))
  } finally {
    await nats.close()
    await server.stop()
  }
}
