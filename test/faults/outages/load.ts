/**
 * A fleet and a backend that go on whatever they are answered: submissions at a fixed rate, each
 * sent once, some of those that failed sent again later with the same bytes; and beside it calls of
 * the api for alerts and for a device. Every call ends ok, refused or unknown, and is kept with
 * when it began and how long it took.
 */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { toEventId } from '#shared/core/base/ids.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { type Signer, validBody } from '../../support/telemetry/raw-submissions.ts'

export type Outcome = 'ok' | 'refused' | 'unknown'
export type CallKind = 'submit' | 'again' | 'alerts' | 'device'

export type Call = {
  kind: CallKind
  /** On the monotonic clock. */
  begunMs: number
  tookMs: number
  outcome: Outcome
  /** 0 when there was no answer. */
  status: number
  /** Whether a refusal said when to come back. */
  retryAfter: boolean
}

export type Submission = { eventId: string; device: string; alerts: boolean; body: string }

export type OutageLoad = {
  calls: Call[]
  /** By event id. */
  sent: Map<string, Submission>
  accepted: Set<string>
  /** Sends some of those again that were refused, or ended without an answer, until now. */
  sendAgain: (count: number) => Promise<void>
  /** Sends nothing new, and resolves once everything sent has ended. */
  stop: () => Promise<void>
}

export type OutageLoadOptions = {
  ingestUrl: string
  apiUrl: string
  apiKey: string
  signer: Signer
  ratePerSecond: number
}

const nowMs = () => performance.now()
/** One submission in so many deserves an alert, of a session of its own. */
const alertEvery = 8
/** Every answer is there long before. */
const answerLimitMs = 10_000
const readEveryMs = 100
const againAtOnce = 20

export function startOutageLoad(options: OutageLoadOptions): OutageLoad {
  const { signer, apiUrl, ratePerSecond } = options
  const agent = new Agent({ keepAlive: true })
  const calls: Call[] = []
  const sent: OutageLoad['sent'] = new Map()
  const accepted = new Set<string>()
  let failed: Submission[] = []
  let lastDevice = 'none'
  const open = new Set<Promise<void>>()
  let running = true
  let made = 0

  const submit = async (submission: Submission, kind: 'submit' | 'again') => {
    const { body, eventId } = submission
    const call = await callOnce(kind, `${options.ingestUrl}/v1/rasp/ingest`, {
      agent,
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signBody(body, signer.secret),
      },
    })
    calls.push(call)
    if (call.outcome === 'ok') {
      accepted.add(eventId)
      lastDevice = submission.device
    } else {
      failed.push(submission)
    }
  }
  const track = (work: Promise<void>) => {
    const tracked: Promise<void> = work.finally(() => open.delete(tracked))
    open.add(tracked)
  }
  const startMs = nowMs()
  const timer = setInterval(() => {
    // By the clock: a slow moment is caught up with, not left out.
    const due = Math.floor(((nowMs() - startMs) / 1_000) * ratePerSecond)
    while (made < due) {
      const submission = makeSubmission(signer.tenantId, made++ % alertEvery === 0)
      sent.set(submission.eventId, submission)
      track(submit(submission, 'submit'))
    }
  }, 5)
  const headers = { authorization: `Bearer ${options.apiKey}` }
  const read = async (kind: 'alerts' | 'device', path: () => string) => {
    while (running) {
      track(
        callOnce(kind, `${apiUrl}/v1/di/${path()}`, { agent, method: 'GET', headers }).then(
          (call) => void calls.push(call),
        ),
      )
      await pause(readEveryMs)
    }
  }
  track(read('alerts', () => 'alerts?limit=5'))
  // A device that was accepted this moment may be a moment from being known: 404 is an answer.
  track(read('device', () => `devices/${lastDevice}`))
  return {
    calls,
    sent,
    accepted,
    sendAgain: async (count) => {
      const again = failed.splice(0, count)
      failed = []
      for (let at = 0; at < again.length; at += againAtOnce) {
        await Promise.all(again.slice(at, at + againAtOnce).map((one) => submit(one, 'again')))
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

function makeSubmission(tenantId: string, alerts: boolean): Submission {
  const made = validBody(tenantId)
  if (alerts) Object.assign(made.signals.debugger, { frida_detected: true })
  const body = JSON.stringify(made)
  return { eventId: toEventId(Buffer.from(body)), device: made.device_id, alerts, body }
}

type Sent = { agent: Agent; method: string; headers: Record<string, string>; body?: string }

function callOnce(kind: CallKind, url: string, { body, ...options }: Sent): Promise<Call> {
  const begunMs = nowMs()
  return new Promise((resolve) => {
    const end = (status: number, retryAfter = false) => {
      const answered = status === 200 || (status === 404 && kind === 'device')
      const outcome = answered ? 'ok' : status === 0 ? 'unknown' : 'refused'
      resolve({ kind, begunMs, tookMs: nowMs() - begunMs, outcome, status, retryAfter })
    }
    const sending = request(url, { ...options, timeout: answerLimitMs })
    sending.on('timeout', () => sending.destroy(new Error('no answer')))
    sending.on('error', () => end(0))
    sending.on('response', (response) => {
      const { statusCode = 0, headers } = response
      response.resume()
      response.on('error', () => end(0))
      response.on('end', () => end(statusCode, Number(headers['retry-after']) >= 1))
    })
    sending.end(body)
  })
}
