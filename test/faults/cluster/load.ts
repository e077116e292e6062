/**
 * A fleet that sends at a constant rate. An event without a 200 goes to the next edge with the same
 * bytes, as an SDK does, until it is accepted. Every try is kept.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry } from '../../support/http/send-request.ts'
import { toBody } from '../../support/http/tenant-client.ts'

export type Try = {
  event: number
  edge: number
  begunMs: number
  tookMs: number
  /** 0 without a response. */
  status: number
}

export type Sent = { sessionId: string; blocked: boolean; eventId: string | null; tries: number }

export type FleetLoad = {
  tries: Try[]
  /** By event; `eventId` is null until it is accepted. */
  sent: Sent[]
  /** Sends nothing new, and waits until everything sent is accepted or the limit has passed. */
  finish: (limitMs: number) => Promise<void>
}

export type FleetLoadOptions = {
  urls: string[]
  tenantId: string
  secret: string
  ratePerSecond: number
  /** In [0, 1). */
  random: () => number
}

const resendMs = 250
/** An edge responds within 2 s in every state. */
const limitMs = 10_000
/** The share of events that raise an alert, each in a session of its own. */
const blockedShare = 0.25

export function startFleetLoad(options: FleetLoadOptions): FleetLoad {
  const { urls, tenantId, secret, random } = options
  const agents = urls.map(() => new Agent({ keepAlive: true }))
  const tries: Try[] = []
  const sent: Sent[] = []
  let givenUp = false

  const sendUntilAccepted = async () => {
    const event = sent.length
    const sessionId = `session-${event}`
    const one: Sent = { sessionId, blocked: random() < blockedShare, eventId: null, tries: 0 }
    sent.push(one)
    const device = one.blocked ? 'test-block' : `device-of-${sessionId}`
    const body = toBody(tenantId, { device, session: sessionId })
    for (let at = Math.floor(random() * urls.length); !givenUp; at++) {
      const edge = at % urls.length
      const agent = agents[edge]!
      const answer = await postTelemetry(urls[edge]!, { agent, body, secret, limitMs })
      const { status, begunMs, tookMs } = answer
      one.tries++
      one.eventId = answer.eventId
      tries.push({ event, edge, begunMs, tookMs, status })
      if (status === 200) return
      await pause(resendMs * (0.5 + random()))
    }
  }
  const loop = startOpenLoop(options.ratePerSecond, sendUntilAccepted)
  return {
    tries,
    sent,
    finish: async (limitMs) => {
      const limit = setTimeout(() => {
        givenUp = true
      }, limitMs)
      await loop.stop()
      clearTimeout(limit)
      for (const agent of agents) agent.destroy()
    },
  }
}
