/**
 * One orderly stop of one process under load: requests are sent except their last byte, the process
 * gets a SIGTERM, the last bytes follow at random moments, and the process is started again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import type { ProcessEnd } from '../../support/process/service-process.ts'
import type { StopsLoad } from './load.ts'
import type { Processes } from './rig.ts'
import { beginRequest, type LateAnswer, type UnfinishedRequest } from './unfinished-request.ts'

export type Stop = {
  name: ServiceName
  ended: ProcessEnd
  /** The responses to requests that were finished after the signal. */
  answers: LateAnswer[]
  /** Whether one more request was begun and never finished. */
  silent: boolean
  output: string
}

export type StopsDeps = {
  processes: Processes
  load: StopsLoad
  apiKey: string
  /** In [0, 1). */
  random: () => number
  /** Tenants whose creation was confirmed. */
  created: string[]
  /** The share of stops with a request that is never finished, in [0, 1]. */
  silentShare: number
}

/** Unfinished requests in each stop. An internal listener guarantees them nothing. */
const unfinishedEach: Record<ServiceName, number> = {
  ingest: 4,
  api: 4,
  console: 4,
  scorer: 0,
  delivery: 0,
}
/** The last byte comes within this time, before the process closes unfinished requests. */
const lastByteMaxMs = 1_500

type StopRequest = { request: Buffer; note: (answer: string) => void }

/** A request to one process. */
function makeRequest(
  { load, processes, apiKey, created }: StopsDeps,
  name: ServiceName,
): StopRequest {
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

const healthRequest = Buffer.from('GET /healthz HTTP/1.1\r\nHost: stop\r\n\r\n')

/** Stops and starts one process. */
export async function stopOnce(deps: StopsDeps, name: ServiceName): Promise<Stop> {
  const { load, processes, random } = deps
  const service = processes.services[name]
  await pause(300 * random())
  const begun = await Promise.all(
    Array.from({ length: unfinishedEach[name] }, async (_, at) => {
      const made = makeRequest(deps, name)
      // Every other request goes over a connection that has carried one before.
      return {
        ...made,
        unfinished: await beginRequest(service.port, made.request, at % 2 ? healthRequest : null),
      }
    }),
  )
  const silent: UnfinishedRequest[] = []
  if (random() < deps.silentShare) {
    silent.push(await beginRequest(service.port, makeRequest(deps, name).request, null))
  }
  // Work for the process: telemetry to store and decide, webhooks to send.
  load.burst(name === 'scorer' ? 200 : 20)
  await pause(200 * random())
  const ending = service.terminate()
  const answers = await Promise.all(
    begun.map(async ({ unfinished, note }) => {
      await pause(lastByteMaxMs * random())
      const answer = await unfinished.finish()
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
