/**
 * A fleet that never stops: submissions at a fixed rate, each sent again with the same bytes until
 * it is answered with a 200, as an SDK does; every fourth deserves an alert. Beside it two readers
 * of the api.
 */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { type Signer, toSigned, validBody } from '../../support/telemetry/raw-submissions.ts'

export type Submission = { body: string; device: string; alerts: boolean }

export type StopsLoad = {
  /** By event id, of every answer of 200. */
  accepted: Map<string, Submission>
  /** Answers of each status; `refused` without a connection, `reset` after it was made. */
  outcomes: Map<string, number>
  reads: Map<string, number>
  /** Sends so many at once. */
  burst: (count: number) => void
  /** One that nobody has sent yet, as bytes for a socket; `note` what was answered to it. */
  make: () => { request: Buffer; note: (answer: string) => void }
  /** Resolves when everything sent is answered. */
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
const answerLimitMs = 20_000

export function startStopsLoad(options: Options): StopsLoad {
  const { signer } = options
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const accepted: StopsLoad['accepted'] = new Map()
  const outcomes = new Map<string, number>()
  const reads = new Map<string, number>()
  const open = new Set<Promise<void>>()
  let running = true
  let made = 0

  const makeSubmission = (): Submission => {
    const alerts = made++ % 4 === 0
    const body = validBody(signer.tenantId)
    if (alerts) Object.assign(body.signals.debugger, { frida_detected: true })
    return { body: JSON.stringify(body), device: body.device_id, alerts }
  }
  const note = (submission: Submission, text: string) => {
    const [, eventId] = /"event_id":"([^"]+)"/.exec(text) ?? []
    if (eventId !== undefined) accepted.set(eventId, submission)
    return eventId !== undefined
  }
  const submit = async () => {
    const submission = makeSubmission()
    const { body } = submission
    const url = `${options.ingestUrl}/v1/rasp/ingest`
    const headers = {
      'content-type': 'application/json',
      'x-service-signature': signBody(body, signer.secret),
    }
    const deadlineMs = performance.now() + giveUpMs
    while (performance.now() < deadlineMs) {
      const { outcome, text } = await call(url, { agent, method: 'POST', headers, body })
      count(outcomes, outcome)
      if (outcome === '200' && note(submission, text)) return
      await pause(retryMs)
    }
    count(outcomes, 'given up')
  }
  const track = (work: Promise<void>) => {
    const tracked: Promise<void> = work.finally(() => open.delete(tracked))
    open.add(tracked)
  }
  const startMs = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    while (startMs + (sent * 1_000) / options.ratePerSecond <= performance.now()) {
      sent++
      track(submit())
    }
  }, 5)
  const read = async () => {
    const headers = { authorization: `Bearer ${options.apiKey}` }
    while (running) {
      const url = `${options.apiUrl}/v1/di/alerts?limit=20`
      const { outcome } = await call(url, { agent, method: 'GET', headers })
      count(reads, outcome)
      await pause(outcome === '200' ? 10 : retryMs)
    }
  }
  for (let reader = 0; reader < readers; reader++) track(read())
  return {
    accepted,
    outcomes,
    reads,
    burst: (size) => {
      for (let n = 0; n < size; n++) track(submit())
    },
    make: () => {
      const submission = makeSubmission()
      return {
        request: toSigned(submission.body, signer),
        note: (answer) => {
          note(submission, answer)
        },
      }
    },
    stop: async () => {
      running = false
      clearInterval(timer)
      while (open.size > 0) await Promise.all(open)
      agent.destroy()
    },
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

type Call = { agent: Agent; method: string; headers: Record<string, string>; body?: string }

/**
 * The status of the answer, or how it failed: `refused` where nobody listened, `raced` where a
 * connection that had lain idle was ended at the moment it was used again, which no server can
 * rule out, `reset` for whatever ended after it had been begun, and `no answer` after 20 s.
 */
function call(url: string, { body, ...options }: Call): Promise<{ outcome: string; text: string }> {
  return new Promise((resolve) => {
    let connected = false
    const sent = request(url, options)
    sent.setTimeout(answerLimitMs, () => {
      resolve({ outcome: 'no answer', text: '' })
      sent.destroy()
    })
    sent.on('socket', (socket) => {
      connected = !socket.connecting
      if (!connected) socket.once('connect', () => (connected = true))
    })
    sent.on('error', () => {
      const outcome = !connected ? 'refused' : sent.reusedSocket ? 'raced' : 'reset'
      resolve({ outcome, text: '' })
    })
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', () => resolve({ outcome: 'reset', text: '' }))
      response.on('end', () => resolve({ outcome: String(response.statusCode), text }))
    })
    sent.end(body)
  })
}
