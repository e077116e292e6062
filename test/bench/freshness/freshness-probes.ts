/**
 * Probes of the freshness benchmark: submissions beside the fleet's, each polled until the device
 * API returns its session. A poll takes some 14 ms of the measured CPU, so there are few: one at a
 * time, none for a submission that was accepted just now. A session counts as visible when the
 * answer with it arrived: less frequent polls can only lengthen the reported time.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type ApiDevice,
  ingest,
  read,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { StackFacts } from '../../support/process/stack.ts'

export type Probes = {
  /** Ends the probes after those in flight are visible. */
  stop: () => Promise<ProbeResult>
}

export type ProbeResult = {
  /** When each was accepted, in ms since 1970, and the time until it was visible. */
  seen: { acceptedMs: number; tookMs: number }[]
  /** Refused submissions, and sessions that were not visible at the time limit. */
  failed: number
  /** Number of polls of the API. */
  looks: number
}

const everyMs = 250
const firstLookMs = 100
const lookEveryMs = 60
const patienceMs = 30_000
/** Below the threshold of the velocity rule. */
const sessionsOfDevice = 12

type Probe = { device: string; session: string; acceptedMs: number }

const nowMs = () => performance.timeOrigin + performance.now()

/** Starts sending and polling. */
export function startProbes(stack: StackFacts, tenant: Tenant): Probes {
  const run = randomBytes(6).toString('hex')
  const result: ProbeResult = { seen: [], failed: 0, looks: 0 }
  const waiting = new Set<Probe>()
  let stopping = false
  const send = async () => {
    for (let n = 0; !stopping; n++) {
      const device = `probe-${run}-${Math.floor(n / sessionsOfDevice)}`
      const session = `probe-${run}-${n}`
      void submit(device, session)
      // Random intervals, never in step with the measured batches.
      await pause(everyMs * (0.75 + Math.random() / 2))
    }
  }
  const submit = async (device: string, session: string) => {
    const body = toBody(tenant.tenant_id, { device, session, user: device })
    const answer = await ingest(stack, tenant.hmac_secret, body).catch(() => null)
    if (answer?.status === 200) waiting.add({ device, session, acceptedMs: nowMs() })
    else result.failed++
  }
  const look = async () => {
    while (!stopping || waiting.size > 0) {
      const [oldest] = waiting
      if (oldest !== undefined) {
        await pause(Math.max(0, oldest.acceptedMs + firstLookMs - nowMs()))
        await lookAt(oldest.device)
      }
      await pause(lookEveryMs)
    }
  }
  const lookAt = async (device: string) => {
    result.looks++
    const path = `/v1/di/devices/${device}?sessions_limit=${sessionsOfDevice}`
    const answer = await read<ApiDevice>(stack, tenant.public_api_key, path).catch(() => null)
    const atMs = nowMs()
    const there = new Set(
      answer?.status === 200 ? answer.body.sessions.map((one) => one.session_id) : [],
    )
    for (const probe of waiting) {
      const tookMs = atMs - probe.acceptedMs
      if (there.has(probe.session)) result.seen.push({ acceptedMs: probe.acceptedMs, tookMs })
      else if (tookMs > patienceMs) result.failed++
      else continue
      waiting.delete(probe)
    }
  }
  const running = Promise.all([send(), look()])
  return {
    stop: async () => {
      stopping = true
      await running
      return result
    },
  }
}
