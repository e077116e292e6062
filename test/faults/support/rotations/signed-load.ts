/**
 * Clients of one tenant that never stop: at every edge some sign with the newest secret they were
 * told, some with older ones, and some with the newest one that exists anywhere, before anybody is
 * told of it. Every request is kept with when it began, when it ended and how.
 */

import { createHmac } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { postTelemetry } from '../post-telemetry.ts'

export type Attempt = {
  edge: number
  /** The secret's place in the order in which secrets came to be. */
  secret: number
  /** On this process's monotonic clock. */
  begunMs: number
  endedMs: number
  /** The answer's status; 0 when there was none. */
  status: number
  eventId: string | null
}

export type SignedLoad = {
  attempts: Attempt[]
  /** Makes a secret known: its place in the order, the same one for a secret known already. */
  learn: (secret: string) => number
  /** The tenant is told: its clients use this one from now on. */
  disclose: (secret: number) => void
  /** Requests with the newest and the older secrets to every edge, begun at this moment. */
  burst: (each: number) => void
  stop: () => Promise<void>
}

export type LoadOptions = {
  urls: string[]
  tenantId: string
  secret: string
  /** What each client waits between two requests. */
  pauseMs: number
  /** In [0, 1). */
  random: () => number
}

/** An edge that is paused for ten seconds answers after eleven. */
const answerLimitMs = 15_000
/** An edge that does not answer gets more requests all the same, as a fleet's edge would. */
const impatientMs = 50
const openMax = 100
const nowMs = () => performance.now()

/**
 * Starts five clients for each edge: two with the newest secret, two with older ones, one ahead.
 */
export function startSignedLoad(options: LoadOptions): SignedLoad {
  const { urls, tenantId, random } = options
  const agents = urls.map(() => new Agent({ keepAlive: true }))
  const attempts: Attempt[] = []
  const secrets = [options.secret]
  let disclosed = 0
  let running = true
  let bodies = 0
  const bursts = new Set<Promise<void>>()

  const attempt = async (edge: number, secret: number) => {
    const body = toBody(tenantId, ++bodies)
    const signature = createHmac('sha256', secrets[secret]!).update(body).digest('base64')
    const begunMs = nowMs()
    const answer = await postTelemetry(urls[edge]!, agents[edge]!, body, signature, answerLimitMs)
    attempts.push({ edge, secret, begunMs, endedMs: nowMs(), ...answer })
  }
  const newest = () => disclosed
  const older = () => Math.max(0, disclosed - 1 - Math.floor(random() * 3))
  const ahead = () => secrets.length - 1
  const client = async (edge: number, choose: () => number) => {
    const open = new Set<Promise<void>>()
    while (running) {
      if (open.size < openMax) {
        const sent: Promise<void> = attempt(edge, choose()).finally(() => open.delete(sent))
        open.add(sent)
        await Promise.race([sent, pause(impatientMs)])
      }
      await pause(options.pauseMs * (0.5 + random()))
    }
    await Promise.all(open)
  }
  const choices = [newest, newest, older, older, ahead]
  const clients = urls.flatMap((_, edge) => choices.map((choose) => client(edge, choose)))
  return {
    attempts,
    learn: (secret) => {
      const known = secrets.indexOf(secret)
      return known === -1 ? secrets.push(secret) - 1 : known
    },
    disclose: (secret) => {
      disclosed = secret
    },
    burst: (each) => {
      for (let edge = 0; edge < urls.length; edge++) {
        for (let n = 0; n < each; n++) {
          for (const secret of [disclosed, Math.max(0, disclosed - 1)]) {
            const sent: Promise<void> = attempt(edge, secret).finally(() => bursts.delete(sent))
            bursts.add(sent)
          }
        }
      }
    },
    stop: async () => {
      running = false
      await Promise.all([...clients, ...bursts])
      for (const agent of agents) agent.destroy()
    },
  }
}

function toBody(tenantId: string, n: number): string {
  return JSON.stringify({
    tenant_id: tenantId,
    device_id: `device-${n}`,
    session_id: `session-${n}`,
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
  })
}
