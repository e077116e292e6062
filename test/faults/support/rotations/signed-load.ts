/**
 * Clients of one tenant. At every edge some sign with the newest disclosed secret, some with older
 * ones, and some with the newest existing secret, before the tenant gets it. Every request is
 * recorded with its start, end and status.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { postTelemetry } from '../../../support/http/send-request.ts'
import { toBody } from '../../../support/http/tenant-client.ts'

export type Attempt = {
  edge: number
  /** The index of the secret in order of creation. */
  secret: number
  /** On this process's monotonic clock. */
  begunMs: number
  endedMs: number
  /** 0 without a response. */
  status: number
  eventId: string | null
}

export type SignedLoad = {
  attempts: Attempt[]
  /** Adds a secret. @returns its index, also when it was added before */
  addSecret: (secret: string) => number
  /** The clients use this secret from now on. */
  disclose: (secret: number) => void
  /**
   * Sends `each` requests with the newest secret and `each` with the previous one, to every edge.
   */
  burst: (each: number) => void
  stop: () => Promise<void>
}

export type LoadOptions = {
  urls: string[]
  tenantId: string
  secret: string
  /** The pause of each client between two requests. */
  pauseMs: number
  /** In [0, 1). */
  random: () => number
}

/** An edge that is paused for ten seconds responds after eleven. */
const limitMs = 15_000
/** After this time without a response a client sends its next request, as a fleet does. */
const impatientMs = 50
const openMax = 100

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
    const body = toBody(tenantId, { device: `device-${++bodies}`, session: `session-${bodies}` })
    const sent = await postTelemetry(urls[edge]!, {
      agent: agents[edge]!,
      body,
      secret: secrets[secret]!,
      limitMs,
    })
    const { begunMs, status, eventId } = sent
    attempts.push({ edge, secret, begunMs, endedMs: begunMs + sent.tookMs, status, eventId })
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
    addSecret: (secret) => {
      const index = secrets.indexOf(secret)
      return index === -1 ? secrets.push(secret) - 1 : index
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
