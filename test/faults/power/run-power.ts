/**
 * The power cut, played twice over on real processes under load: the order of system calls behind
 * each 200, and what is left of the store when everything after the last sync is taken away.
 */
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { until } from '../../support/process/until.ts'
import { startNats } from '../../support/servers/nats-server.ts'
import {
  type EdgeRig,
  quietLog,
  startEdgeRig,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'
import { validBody } from '../../support/telemetry/raw-submissions.ts'
import { createDurableStore } from './durable-store.ts'
import { judgeOrder, type OrderFindings } from './sync-order.ts'
import { readTrace, trace } from './system-calls.ts'

export type OrderRun = OrderFindings & { requests: number; accepted: number }

export type CutRun = {
  accepted: number
  /** Events in the store that the cut left. */
  left: number
  /** Accepted events that are not among them. */
  lost: string[]
  syncs: number
  files: number
  lostFiles: number
  lostBytes: number
}

export type PowerOptions = {
  /** False leaves the server its own default: a sync every two minutes. */
  syncAlways: boolean
}

const clients = 32

/** @param options.requests how many to send, 32 at a time */
export async function runOrder(options: PowerOptions & { requests: number }): Promise<OrderRun> {
  return await withRig(options, async (rig, tenant, dir) => {
    const edge = await rig.spawnEdge()
    const file = join(dir, 'trace')
    const tracer = await trace([rig.server.pid, edge.child.pid!], file)
    const load = startClients(edge.url, tenant, options.requests)
    await load.done
    await tracer.end()
    const ports = { nats: rig.server.port, edge: Number(new URL(edge.url).port) }
    const findings = await judgeOrder(readTrace(file), ports)
    return { ...findings, requests: options.requests, accepted: load.accepted.size }
  })
}

/** @param options.afterMs how long the load lasts until the power goes */
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

/** Each sends one after the other; a request that fails is not sent again. */
function startClients(url: string, tenant: TestTenant, requests: number): Clients {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const accepted = new Set<string>()
  let left = requests
  const client = async () => {
    while (left-- > 0) {
      const eventId = await submit(url, agent, tenant)
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

/** @returns the id of the event when it was answered with a 200 */
function submit(url: string, agent: Agent, tenant: TestTenant): Promise<string | null> {
  const body = JSON.stringify(validBody(tenant.tenantId))
  const headers = {
    'content-type': 'application/json',
    'x-service-signature': signBody(body, tenant.secret),
  }
  return new Promise((resolve) => {
    const options = { agent, method: 'POST', headers, timeout: 5_000 }
    const sent = request(`${url}/v1/rasp/ingest`, options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', () => resolve(null))
      response.on('end', () => {
        const { event_id: eventId } = JSON.parse(text) as { event_id?: string }
        resolve(response.statusCode === 200 ? (eventId ?? null) : null)
      })
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer')))
    sent.on('error', () => resolve(null))
    sent.end(body)
  })
}

/** Starts a server on a store and reads every event of the stream, none when the stream is gone. */
async function readStore(dir: string, { syncAlways }: PowerOptions): Promise<Set<string>> {
  const server = await startNats({ dir, syncAlways })
  const nats = await connectNats(server.url, 'test', quietLog)
  try {
    const stored = new Set<string>()
    const info = await nats.manager.streams.info(telemetryStream).catch((error: unknown) => {
      if ((error as { code?: string }).code === '404') return null
      throw error
    })
    if (info === null || info.state.messages === 0) return stored
    for (let seq = info.state.first_seq; seq <= info.state.last_seq; seq++) {
      const message = await nats.manager.streams.getMessage(telemetryStream, { seq })
      const { events, invalid } = decodeBatch(message.data, message.seq)
      if (invalid.length > 0) throw new Error(`message ${seq}: ${invalid[0]!.detail}`)
      for (const { event_id: eventId } of events) stored.add(eventId)
    }
    return stored
  } finally {
    await nats.close()
    await server.stop()
  }
}
