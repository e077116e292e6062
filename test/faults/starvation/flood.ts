/**
 * A tenant that sends as fast as it can, in a thread of its own: each connection sends its next
 * submission as soon as it has an answer, whatever that is.
 */
import { Agent } from 'node:http'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '../../support/http/tenant-client.ts'
import { postOnce, toSteadyBody } from '../support/steady-load.ts'

export type FloodOptions = { ingestUrl: string; tenant: Tenant; connections: number }

export type FloodResult = {
  statuses: Map<number, number>
  /** Answers of 429 and 503 without `Retry-After`. */
  bare: number
}

export type Flood = {
  /** Ends it. */
  stop: () => Promise<FloodResult>
}

/** Begins at once. */
export function startFlood(options: FloodOptions): Flood {
  const worker = new Worker(new URL(import.meta.url), { workerData: options })
  const ended = new Promise<FloodResult>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  return {
    stop: () => {
      worker.postMessage('stop')
      return ended
    },
  }
}

/**
 * Bodies that are signed beforehand and sent in turn, so that the flood costs its sender little.
 */
const bodiesMax = 2_000

async function flood({ ingestUrl, tenant, connections }: FloodOptions): Promise<FloodResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const bodies = Array.from({ length: bodiesMax }, (_, n) => {
    const body = toSteadyBody(tenant.tenant_id, `flood-${n}`)
    return { body, signature: signBody(body, tenant.hmac_secret) }
  })
  const result: FloodResult = { statuses: new Map(), bare: 0 }
  let running = true
  parentPort!.once('message', () => {
    running = false
  })
  let sent = 0
  const client = async () => {
    while (running) {
      const { body, signature } = bodies[sent++ % bodiesMax]!
      const { status, retryAfter } = await postOnce(ingestUrl, agent, body, signature)
      result.statuses.set(status, (result.statuses.get(status) ?? 0) + 1)
      if ((status === 429 || status === 503) && retryAfter === undefined) result.bare++
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
  agent.destroy()
  return result
}

if (parentPort !== null && (workerData as FloodOptions | null)?.connections !== undefined) {
  parentPort.postMessage(await flood(workerData as FloodOptions))
}
