/**
 * A fleet that sends at a constant rate. Each submission is sent again with the same bytes until it
 * gets a 200, as an SDK does; every fourth raises an alert. Two readers call the api meanwhile.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry, type SentRequest, sendRequest } from '../../support/http/send-request.ts'
import { type Signer, toSigned, validBody } from '../../support/telemetry/raw-submissions.ts'
import { count } from '../support/counts.ts'

export type Submission = { body: string; device: string; alerts: boolean }

export type StopsLoad = {
  /** By the event id of every 200. */
  accepted: Map<string, Submission>
  /** Submissions by status, or by how they ended without a response. */
  outcomes: Map<string, number>
  reads: Map<string, number>
  /** Sends `count` submissions at once. */
  burst: (count: number) => void
  /** A new submission as the bytes of a request; `note` takes the response. */
  make: () => { request: Buffer; note: (answer: string) => void }
  /** Resolves when everything sent has ended. */
  stop: () => Promise<void>
}

type Options = {
  ingestUrl: string
  apiUrl: string
  apiKey: string
  signer: Signer
  ratePerSecond: number
}

const readers = 2
const retryMs = 100
const giveUpMs = 60_000
const limitMs = 20_000

export function startStopsLoad(options: Options): StopsLoad {
  const { signer } = options
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const accepted: StopsLoad['accepted'] = new Map()
  const outcomes = new Map<string, number>()
  const reads = new Map<string, number>()
  let running = true
  let made = 0

  const makeSubmission = (): Submission => {
    const alerts = made++ % 4 === 0
    const body = validBody(signer.tenantId)
    if (alerts) Object.assign(body.signals.debugger, { frida_detected: true })
    return { body: JSON.stringify(body), device: body.device_id, alerts }
  }
  const submit = async () => {
    const submission = makeSubmission()
    const { body } = submission
    const deadlineMs = performance.now() + giveUpMs
    while (performance.now() < deadlineMs) {
      const { secret } = signer
      const sent = await postTelemetry(options.ingestUrl, { agent, body, secret, limitMs })
      count(outcomes, toOutcome(sent))
      if (sent.eventId !== null) {
        accepted.set(sent.eventId, submission)
        return
      }
      await pause(retryMs)
    }
    count(outcomes, 'given up')
  }
  const read = async () => {
    const headers = { authorization: `Bearer ${options.apiKey}` }
    while (running) {
      const url = `${options.apiUrl}/v1/di/alerts?limit=20`
      const sent = await sendRequest(url, { agent, headers, limitMs })
      count(reads, toOutcome(sent))
      await pause(sent.status === 200 ? 10 : retryMs)
    }
  }
  const loop = startOpenLoop(options.ratePerSecond, submit)
  for (let reader = 0; reader < readers; reader++) loop.track(read())
  return {
    accepted,
    outcomes,
    reads,
    burst: (size) => {
      for (let n = 0; n < size; n++) loop.track(submit())
    },
    make: () => {
      const submission = makeSubmission()
      return {
        request: toSigned(submission.body, signer),
        note: (answer) => {
          const [, eventId] = /"event_id":"([^"]+)"/.exec(answer) ?? []
          if (eventId !== undefined) accepted.set(eventId, submission)
        },
      }
    },
    stop: async () => {
      running = false
      await loop.stop()
      agent.destroy()
    },
  }
}

/**
 * The status, or how the request ended. `idle cut`: a server closed an idle connection at the
 * moment when it was used again, which no server can prevent.
 */
function toOutcome({ ended, status, reused }: SentRequest): string {
  if (ended === 'response') return String(status)
  return ended === 'cut' && reused ? 'idle cut' : ended
}
