/**
 * A fleet and a backend that continue whatever the responses are: submissions at a constant rate,
 * each sent once, some failed ones sent again later with the same bytes; and calls of the api for
 * alerts and for a device. Every call is recorded with its start, duration and outcome.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { toEventId } from '#shared/core/base/ids.ts'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry, type SentRequest, sendRequest } from '../../support/http/send-request.ts'
import { type Signer, validBody } from '../../support/telemetry/raw-submissions.ts'

export type Outcome = 'ok' | 'refused' | 'unknown'
export type CallKind = 'submit' | 'again' | 'alerts' | 'device'

export type Call = {
  kind: CallKind
  /** On the monotonic clock. */
  begunMs: number
  tookMs: number
  outcome: Outcome
  /** 0 without a response. */
  status: number
  /** Whether the response has a `Retry-After` of a second or more. */
  retryAfter: boolean
}

export type Submission = { eventId: string; device: string; alerts: boolean; body: string }

export type OutageLoad = {
  calls: Call[]
  /** By event id. */
  sent: Map<string, Submission>
  accepted: Set<string>
  /** Sends again some of the submissions that have failed since the last call. */
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

/** One submission in this number raises an alert, in its own session. */
const alertEvery = 8
const limitMs = 10_000
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
  let running = true
  let made = 0

  const submit = async (submission: Submission, kind: 'submit' | 'again') => {
    const { body, eventId } = submission
    const { secret } = signer
    const call = toCall(
      kind,
      await postTelemetry(options.ingestUrl, { agent, body, secret, limitMs }),
    )
    calls.push(call)
    if (call.outcome === 'ok') {
      accepted.add(eventId)
      lastDevice = submission.device
    } else {
      failed.push(submission)
    }
  }
  const loop = startOpenLoop(ratePerSecond, () => {
    const submission = makeSubmission(signer.tenantId, made++ % alertEvery === 0)
    sent.set(submission.eventId, submission)
    return submit(submission, 'submit')
  })
  const headers = { authorization: `Bearer ${options.apiKey}` }
  const readAgain = async (kind: 'alerts' | 'device', path: () => string) => {
    while (running) {
      const url = `${apiUrl}/v1/di/${path()}`
      loop.track(
        sendRequest(url, { agent, headers, limitMs }).then((call) =>
          calls.push(toCall(kind, call)),
        ),
      )
      await pause(readEveryMs)
    }
  }
  loop.track(readAgain('alerts', () => 'alerts?limit=5'))
  // The device may not be stored yet, so 404 counts as ok.
  loop.track(readAgain('device', () => `devices/${lastDevice}`))
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
      await loop.stop()
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

function toCall(kind: CallKind, { begunMs, tookMs, status, headers }: SentRequest): Call {
  const isOk = status === 200 || (status === 404 && kind === 'device')
  const outcome = isOk ? 'ok' : status === 0 ? 'unknown' : 'refused'
  const retryAfter = Number(headers['retry-after']) >= 1
  return { kind, begunMs, tookMs, outcome, status, retryAfter }
}
