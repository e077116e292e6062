/**
 * Measures freshness: for a sample of new sessions, the time from the response to their first event
 * until `GET /v1/di/devices/{id}` shows them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readNewestSessions } from '../check/read-back.ts'
import type { Get } from './http-calls.ts'
import type { Latencies } from './latencies.ts'

export type Prober = {
  /** Offers an event that was just accepted; a few per second are probed. */
  offer(sight: { deviceId: string; sessionId: string; acceptedMs: number }): void
  /** Waits for running probes, then stops. */
  finish(): Promise<{ unseen: number }>
}

type ProberOptions = {
  get: Get
  latencies: Latencies
  perSecond: number
  sinceStartMs: () => number
}

/**
 * The pause between two reads is an eighth of the time so far: the result is exact to about an
 * eighth and never too small, and reads do not slow down a slow service.
 */
const lookEveryMinMs = 40
const lookEveryShare = 1 / 8
const probesMax = 100

/** A session that is not visible at this time limit counts with this time. */
const patienceMs = 30_000

/** Sessions per read: the newest one of a busy script is among them. */
const sessionsPerRead = 100

/** Starts a prober; it costs the API a few small requests per probe. */
export function createProber(options: ProberOptions): Prober {
  const { get, latencies, sinceStartMs } = options
  const under = new Set<Promise<void>>()
  const stop = new AbortController()
  let nextMs = 0
  let unseen = 0
  // A session that is never visible counts with the time limit; otherwise the percentiles would be
  // too low.
  const giveUp = (acceptedMs: number) => {
    unseen++
    latencies.record(sinceStartMs() - acceptedMs)
  }
  const follow = async (deviceId: string, sessionId: string, acceptedMs: number) => {
    while (sinceStartMs() - acceptedMs < patienceMs && !stop.signal.aborted) {
      const history = await readNewestSessions(get, deviceId, sessionsPerRead, stop.signal)
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
