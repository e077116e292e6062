/**
 * How fresh the device history is: for a sample of new sessions, the time from the answer to their
 * first event until `GET /v1/di/devices/{id}` shows them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readNewestSessions } from '../check/read-back.ts'
import type { Get } from './http-calls.ts'
import type { Latencies } from './latencies.ts'

export type Prober = {
  /** Offers an event that was just accepted; a few a second are followed. */
  offer(sight: { deviceId: string; sessionId: string; acceptedMs: number }): void
  /** Waits for the probes under way, then stops. */
  finish(): Promise<{ unseen: number }>
}

type ProberOptions = {
  get: Get
  latencies: Latencies
  perSecond: number
  sinceStartMs: () => number
}

/**
 * Looks follow one another after an eighth of what was waited so far: right to about an eighth,
 * never too small, and a service that is slow is not made slower by being asked all the time.
 */
const lookEveryMinMs = 40
const lookEveryShare = 1 / 8
const probesMax = 100

/** A session that is not there by then counts as if it came then. */
const patienceMs = 30_000

/** Enough for the newest session of a busy script to be among them. */
const sessionsAsked = 100

/** Starts a prober; it costs the API a few small requests per probe. */
export function createProber(options: ProberOptions): Prober {
  const { get, latencies, sinceStartMs } = options
  const under = new Set<Promise<void>>()
  const stop = new AbortController()
  let nextMs = 0
  let unseen = 0
  // Left out, the worst would flatter the percentiles: it took at least as long as was waited.
  const giveUp = (acceptedMs: number) => {
    unseen++
    latencies.record(sinceStartMs() - acceptedMs)
  }
  const follow = async (deviceId: string, sessionId: string, acceptedMs: number) => {
    while (sinceStartMs() - acceptedMs < patienceMs && !stop.signal.aborted) {
      const history = await readNewestSessions(get, deviceId, sessionsAsked, stop.signal)
      if (history?.sessions.some((session) => session.session_id === sessionId)) {
        latencies.record(sinceStartMs() - acceptedMs)
        return
      }
      const waitedMs = sinceStartMs() - acceptedMs
      await sleep(Math.max(lookEveryMinMs, waitedMs * lookEveryShare))
    }
    giveUp(acceptedMs)
  }
  return {
    offer({ deviceId, sessionId, acceptedMs }) {
      const nowMs = sinceStartMs()
      if (nowMs < nextMs || under.size >= probesMax) return
      nextMs = nowMs + 1000 / options.perSecond
      const probe = follow(deviceId, sessionId, acceptedMs).catch(() => giveUp(acceptedMs))
      under.add(probe)
      void probe.finally(() => under.delete(probe))
    },
    async finish() {
      const timer = setTimeout(() => stop.abort(), patienceMs)
      await Promise.all(under)
      clearTimeout(timer)
      return { unseen }
    },
  }
}
