/**
 * One orderly stop of one process under load: requests are begun and lack their last byte, the
 * process is told to end, the last bytes follow at random moments, and it is started again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { StopsLoad } from './load.ts'
import type { Ended, Processes, ServiceName } from './rig.ts'
import { type Held, type HeldAnswer, holdRequest } from './unfinished-request.ts'

export type Stop = {
  name: ServiceName
  ended: Ended
  /** What was answered to each request that was finished after the signal. */
  answers: HeldAnswer[]
  /** Whether another request was begun and never finished. */
  silent: boolean
  output: string
}

export type StopsDeps = {
  processes: Processes
  load: StopsLoad
  apiKey: string
  /** In [0, 1). */
  random: () => number
  /** Tenants whose creation was answered. */
  created: string[]
  /** In how many stops somebody begins a request and never ends it, in [0, 1]. */
  silentShare: number
}

/** An internal listener promises nothing to a request that a stop interrupts. */
const heldEach: Record<ServiceName, number> = {
  ingest: 4,
  api: 4,
  console: 4,
  scorer: 0,
  delivery: 0,
}
/** The last byte comes this late at most: before unfinished requests are given up. */
const lastByteMaxMs = 1_500

type Made = { request: Buffer; note: (answer: string) => void }

/** What is begun at each process, of its own kind. */
function makeRequest({ load, processes, apiKey, created }: StopsDeps, name: ServiceName): Made {
  const head = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: stop\r\n${more}\r\n`
  if (name === 'ingest') return load.make()
  if (name === 'console') {
    const tenantId = `stop-${++tenants}`
    const body = JSON.stringify({ tenant_id: tenantId, environment: 'sandbox' })
    const headers =
      `Authorization: Bearer ${processes.adminToken}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n`
    return {
      request: Buffer.from(head('POST /admin/v1/tenants', headers) + body),
      note: (answer) => {
        if (answer.includes(tenantId)) created.push(tenantId)
      },
    }
  }
  const [path, more] =
    name === 'api'
      ? ['/v1/di/alerts?limit=5', `Authorization: Bearer ${apiKey}\r\n`]
      : ['/metrics', '']
  return { request: Buffer.from(head(`GET ${path}`, more)), note: () => undefined }
}

let tenants = 0

const whole = Buffer.from('GET /healthz HTTP/1.1\r\nHost: stop\r\n\r\n')

/** Stops and starts one process. */
export async function stopOnce(deps: StopsDeps, name: ServiceName): Promise<Stop> {
  const { load, processes, random } = deps
  const service = processes.services[name]
  await pause(300 * random())
  const held = await Promise.all(
    Array.from({ length: heldEach[name] }, async (_, at) => {
      const made = makeRequest(deps, name)
      // Every other one over a connection that has been used before.
      return { ...made, held: await holdRequest(service.port, made.request, at % 2 ? whole : null) }
    }),
  )
  const silent: Held[] = []
  if (random() < deps.silentShare) {
    silent.push(await holdRequest(service.port, makeRequest(deps, name).request, null))
  }
  // Something to have in hand: telemetry to store and decide, webhooks to send.
  load.burst(name === 'scorer' ? 200 : 20)
  await pause(200 * random())
  const ending = service.terminate()
  const answers = await Promise.all(
    held.map(async ({ held: one, note }) => {
      await pause(lastByteMaxMs * random())
      const answer = await one.finish()
      note(answer.body)
      return answer
    }),
  )
  const ended = await ending
  for (const one of silent) one.abandon()
  const output = service.output()
  await service.start()
  return { name, ended, answers, silent: silent.length > 0, output }
}
