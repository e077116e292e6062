/**
 * A tenant that sends as fast as it can, in its own thread: each connection sends its next
 * submission as soon as it has a response.
 */
import { Agent } from 'node:http'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { postTelemetry } from '../../support/http/send-request.ts'
import type { Tenant } from '../../support/http/tenant-client.ts'
import { count } from '../support/counts.ts'
import { lacksRetryAfter, limitMs, toSteadyBody } from '../support/steady-load.ts'

export type FloodOptions = { ingestUrl: string; tenant: Tenant; connections: number }

export type FloodResult = {
  statuses: Map<number, number>
  /** Refusals without `Retry-After`. */
  withoutRetryAfter: number
}

export type Flood = {
  /** Ends the flood. */
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

/** Bodies are made beforehand and reused in rotation, so that the flood costs its sender little. */
const bodiesMax = 2_000

async function flood({ ingestUrl, tenant, connections }: FloodOptions): Promise<FloodResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const bodies = Array.from({ length: bodiesMax }, (_, n) =>
    toSteadyBody(tenant.tenant_id, `flood-${n}`),
  )
  const secret = tenant.hmac_secret
  const result: FloodResult = { statuses: new Map(), withoutRetryAfter: 0 }
  let running = true
  parentPort!.once('message', () => {
    running = false
  })
  let made = 0
  const client = async () => {
    while (running) {
      const body = bodies[made++ % bodiesMax]!
      const sent = await postTelemetry(ingestUrl, { agent, body, secret, limitMs })
      count(result.statuses, sent.status)
      if (lacksRetryAfter(sent)) result.withoutRetryAfter++
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
  agent.destroy()
  return result
}

if (parentPort !== null && (workerData as FloodOptions | null)?.connections !== undefined) {
  parentPort.postMessage(await flood(workerData as FloodOptions))
}
