/**
 * The fleet's open loop keeps its schedule whatever the service does, measures latency from the
 * scheduled time, and distinguishes every way in which a request can end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { makePlan } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'
import type { Answer } from '../../../deploy/fleet/send/http-calls.ts'
import { createLatencies } from '../../../deploy/fleet/send/latencies.ts'
import { sendPlan } from '../../../deploy/fleet/send/sender.ts'
import { createSentEvents } from '../../../deploy/fleet/send/sent-events.ts'
import { toEventId } from '../../../shared/core/base/ids.ts'
import { signBody } from '../../../shared/core/telemetry/signature.ts'

const scorer = compilePolicy(defaultPolicy)

type Request = { body: Buffer; signature: string; atMs: number }

/** Sends a small plan to a function that replaces the service. */
async function send(
  answer: (request: Request, count: number) => Promise<Answer> | Answer,
  options: { ratePerSecond?: number; durationMs?: number; stopAfterMs?: number } = {},
) {
  const { ratePerSecond = 400, durationMs = 250 } = options
  const phones = makePopulation(5, 30)
  const plan = makePlan({ seed: 5, phones, ratePerSecond, durationMs })
  const sentEvents = createSentEvents(plan)
  const latencies = createLatencies()
  const requests: Request[] = []
  const stop = new AbortController()
  const originMs = performance.now() + 50
  const sinceStartMs = () => performance.now() - originMs
  if (options.stopAfterMs !== undefined) {
    void sleep(50 + options.stopAfterMs).then(() => stop.abort())
  }
  await sendPlan({
    plan,
    sentEvents,
    latencies,
    post: async (body, signature) => {
      const request = { body: Buffer.from(body), signature, atMs: sinceStartMs() }
      requests.push(request)
      return answer(request, requests.length)
    },
    prepare: (event, occurredMs) =>
      prepareEvent({ plan, tenantId: 'fleet-send', scorer, startedAtMs: 0 }, event, occurredMs),
    sign: (body) => signBody(body, 'secret'),
    sinceStartMs,
    random: createRandom(5, 'retries'),
    stop: stop.signal,
    onAccepted: () => {},
  })
  return { plan, sentEvents, latencies, requests, counters: sentEvents.counters }
}

function accepted({ body }: Request): Answer {
  const { signals, sdk_meta } = JSON.parse(body.toString())
  const { score, action, reasons } = scorer(signals, {
    sdkVersion: sdk_meta.sdk_version,
    platform: sdk_meta.platform,
    receivedAtMs: 0,
  })
  const json = {
    status: 'accepted',
    rasp_score: score,
    rasp_action: action,
    event_id: toEventId(body),
    flags: reasons.map((reason) => reason.code),
  }
  return { status: 200, retryAfterMs: null, json }
}

const refused = (status: number): Answer => ({ status, retryAfterMs: null, json: null })

describe('the sender', () => {
  it('sends every request of the plan signed, and accepts correct answers', async () => {
    const { plan, counters, requests, sentEvents } = await send(accepted)
    expect(counters).toMatchObject({ sent: 100, accepted: 100, retries: 0, repeats: 2 })
    expect(plan.eventOf.length).toBe(100)
    expect(sentEvents.mismatches.kept).toEqual([])
    for (const { body, signature } of requests) {
      expect(signature).toBe(signBody(body, 'secret'))
    }
  })

  it('keeps its plan while answers are slow, and measures latency from the plan', async () => {
    const { plan, requests, latencies } = await send(async (request) => {
      await sleep(300)
      return accepted(request)
    })
    // All requests are sent before the first answer can arrive.
    expect(requests.length).toBe(100)
    expect(Math.max(...requests.map((one) => one.atMs))).toBeLessThan(plan.atMs.at(-1)! + 150)
    expect(latencies.percentile(0.01)).toBeGreaterThanOrEqual(290)
  })

  it('repeats a request with the same bytes', async () => {
    const { plan, requests } = await send(accepted)
    const bodies = requests.map((one) => one.body.toString())
    expect(new Set(bodies).size).toBe(plan.sessionOf.length)
  })
})

describe('a request that is not accepted at once', () => {
  it('is retried with the same bytes after a 503, a 429 or a broken connection', async () => {
    const first = new Set<string>()
    const { counters, requests, sentEvents } = await send(
      (request) => {
        const body = request.body.toString()
        if (first.has(body)) return accepted(request)
        first.add(body)
        if (first.size % 3 === 0) throw new Error('reset')
        return refused(first.size % 3 === 1 ? 503 : 429)
      },
      { ratePerSecond: 60 },
    )
    expect(counters.accepted).toBe(counters.sent)
    expect(counters.retries).toBe(15)
    expect(new Set(requests.map((one) => one.body.toString())).size).toBe(15)
    expect(sentEvents.mismatches.total).toBe(0)
  })

  it('is a mismatch when it is rejected with a final status, and is not retried', async () => {
    const { counters, requests, sentEvents } = await send((request, count) =>
      count === 7 ? refused(400) : accepted(request),
    )
    expect(counters).toMatchObject({ sent: 100, accepted: 99, refused: 1 })
    expect(requests.length).toBe(100)
    expect(sentEvents.mismatches.byWhat).toEqual({ telemetry_refused: 1 })
  })

  it('is unknown, not rejected, when the run ends before an answer', async () => {
    const { counters, sentEvents } = await send(() => refused(503), { stopAfterMs: 100 })
    expect(counters.accepted).toBe(0)
    expect(counters.unknown).toBe(counters.sent)
    expect(counters.sent).toBeLessThan(100)
    expect(sentEvents.mismatches.total).toBe(0)
  })
})

describe('answers', () => {
  const spoil: [string, (json: Record<string, unknown>) => void][] = [
    ['score', (json) => Object.assign(json, { rasp_score: Number(json.rasp_score) + 1 })],
    ['action', (json) => Object.assign(json, { rasp_action: 'REFUSE' })],
    ['flags', (json) => Object.assign(json, { flags: ['TIME_SPOOFED'] })],
    ['event id', (json) => Object.assign(json, { event_id: 'evt_other' })],
  ]

  it.each(spoil)('with a wrong %s are mismatches', async (_, change) => {
    const { sentEvents } = await send((request, count) => {
      const answer = accepted(request)
      if (count === 3) change(answer.json as Record<string, unknown>)
      return answer
    })
    expect(sentEvents.mismatches.byWhat).toEqual({ ingest_answer: 1 })
  })
})
