/**
 * Good traffic beside hostile requests: signed submissions at a constant rate, each measured from
 * its scheduled time. It runs in its own process, so that the attack does not slow the measurement.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { createRawClient } from '../../support/http/raw-http.ts'
import { type Signer, toSigned, validBody } from '../../support/telemetry/raw-submissions.ts'

type Order = { port: number; signer: Signer; ratePerSecond: number } | 'stop'

export type TrafficResult = {
  /** Responses by status; 0 where the connection broke. */
  statuses: Record<number, number>
  /** From the scheduled time of each request to its response, in ms. */
  latencies: number[]
  /** Of every 200. */
  eventIds: string[]
}

export type Traffic = {
  /** Sends until `stop`. */
  start: (ratePerSecond: number) => void
  stop: () => Promise<TrafficResult>
  end: () => Promise<void>
}

const connections = 32

/** Starts the process; it sends nothing yet. */
export async function startTraffic(port: number, signer: Signer): Promise<Traffic> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), ['serve'], { execArgv: [] })
  await once(child, 'message')
  return {
    start: (ratePerSecond) => {
      child.send({ port, signer, ratePerSecond } satisfies Order)
    },
    stop: async () => {
      const answer = once(child, 'message')
      child.send('stop' satisfies Order)
      const [result] = await answer
      return result as TrafficResult
    },
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      child.disconnect()
      await exit
    },
  }
}

function send({ port, signer, ratePerSecond }: Exclude<Order, 'stop'>) {
  const client = createRawClient(port, connections)
  const result: TrafficResult = { statuses: {}, latencies: [], eventIds: [] }
  let made = 0
  const sendOne = async (dueMs: number) => {
    const body = JSON.stringify({ ...validBody(signer.tenantId), run: `${process.pid}-${++made}` })
    const { status, text } = await client.send(toSigned(body, signer))
    result.latencies.push(performance.now() - dueMs)
    result.statuses[status] = (result.statuses[status] ?? 0) + 1
    const [, eventId] = /"event_id":"([^"]+)"/.exec(text) ?? []
    if (status === 200 && eventId !== undefined) result.eventIds.push(eventId)
  }
  const loop = startOpenLoop(ratePerSecond, sendOne)
  return async (): Promise<TrafficResult> => {
    await loop.stop()
    client.close()
    return result
  }
}

if (process.argv[2] === 'serve' && process.send !== undefined) {
  let stop: (() => Promise<TrafficResult>) | null = null
  process.on('message', (order: Order) => {
    if (order !== 'stop') stop = send(order)
    else void stop?.().then((result) => process.send!(result))
  })
  process.on('disconnect', () => process.exit(0))
  process.send('ready')
}
