/**
 * A fleet that never gives up: events arrive at a steady rate whatever the edges answer, and one
 * that is not answered with a 200 is sent again, the same bytes, to the next edge, as an SDK does.
 * Every try is kept with when it began, how long it took and how it ended.
 */
import { createHmac } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { postTelemetry } from '../support/post-telemetry.ts'

export type Try = {
  event: number
  edge: number
  begunMs: number
  tookMs: number
  /** 0 when there was no answer. */
  status: number
}

export type Sent = { sessionId: string; blocked: boolean; eventId: string | null; tries: number }

export type FleetLoad = {
  tries: Try[]
  /** By event; `eventId` is null until it is accepted. */
  sent: Sent[]
  /** Sends nothing new, and waits until everything sent is accepted. */
  finish: (limitMs: number) => Promise<void>
}

export type FleetLoadOptions = {
  urls: string[]
  tenantId: string
  secret: string
  /** Events per second. */
  rate: number
  /** In [0, 1). */
  random: () => number
}

const nowMs = () => performance.now()
const resendMs = 250
/** An edge answers within 2 s whatever happens; what takes this long has no answer. */
const answerLimitMs = 10_000
/** One event in four forces an alert of its own in a sandbox tenant. */
const blockedShare = 0.25

export function startFleetLoad(options: FleetLoadOptions): FleetLoad {
  const { urls, tenantId, random } = options
  const agents = urls.map(() => new Agent({ keepAlive: true }))
  const tries: Try[] = []
  const sent: Sent[] = []
  const open = new Set<Promise<void>>()
  let running = true
  let impatient = false

  const sendOne = async (event: number) => {
    const one = sent[event]!
    const body = toBody(tenantId, one)
    const signature = createHmac('sha256', options.secret).update(body).digest('base64')
    for (let edge = Math.floor(random() * urls.length); !impatient; edge++) {
      const at = edge % urls.length
      const begunMs = nowMs()
      const { status, eventId } = await postTelemetry(
        urls[at]!,
        agents[at]!,
        body,
        signature,
        answerLimitMs,
      )
      one.tries++
      one.eventId = eventId
      tries.push({ event, edge: at, begunMs, tookMs: nowMs() - begunMs, status })
      if (status === 200) return
      await pause(resendMs * (0.5 + random()))
    }
  }
  const arrive = async () => {
    const startMs = nowMs()
    while (running) {
      // By the clock, not by the turn: a slow moment is caught up with, not left out.
      const due = Math.floor(((nowMs() - startMs) / 1_000) * options.rate)
      while (sent.length < due) {
        const sessionId = `session-${sent.length}`
        sent.push({ sessionId, blocked: random() < blockedShare, eventId: null, tries: 0 })
        const sending: Promise<void> = sendOne(sent.length - 1).finally(() => open.delete(sending))
        open.add(sending)
      }
      await pause(10)
    }
  }
  const arriving = arrive()
  return {
    tries,
    sent,
    finish: async (limitMs) => {
      running = false
      await arriving
      const limit = setTimeout(() => {
        impatient = true
      }, limitMs)
      await Promise.all(open)
      clearTimeout(limit)
      for (const agent of agents) agent.destroy()
    },
  }
}

function toBody(tenantId: string, { sessionId, blocked }: Sent): string {
  return JSON.stringify({
    tenant_id: tenantId,
    device_id: blocked ? 'test-block' : `device-of-${sessionId}`,
    session_id: sessionId,
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
  })
}
