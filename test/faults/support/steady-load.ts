/**
 * Tenants that send at an even rate, each submission when its time has come and once: what every
 * one was answered, and how long that took.
 */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { type Tenant, toBody } from '../../support/http/tenant-client.ts'

export type SteadyLoad = {
  /** Answers by status; 0 where there was none. */
  statuses: Map<number, number>
  /** Answers of 429 and 503 without `Retry-After`. */
  bare: () => number
  /** How long each answer took, in ms. */
  tookMs: number[]
  /** Ends sending and waits for the answers. */
  stop: () => Promise<void>
}

export type SteadyOptions = {
  ingestUrl: string
  tenants: readonly Tenant[]
  /** Of all tenants together. */
  ratePerSecond: number
  /** Makes the bodies of several loads differ. */
  label: string
}

/** Makes a body some 1.5 KB long. */
const padding = 'x'.repeat(1_150)
const answerLimitMs = 10_000
const tickMs = 5
/** An edge takes as many of one address while nothing is known of them, and more later. */
const connectionsMax = 256

/** Begins to send. */
export function startSteadyLoad({ tenants, ratePerSecond, ...options }: SteadyOptions): SteadyLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: connectionsMax })
  const statuses = new Map<number, number>()
  const tookMs: number[] = []
  const open = new Set<Promise<void>>()
  let bare = 0
  let sent = 0
  const send = async (tenant: Tenant) => {
    const text = toSteadyBody(tenant.tenant_id, `${options.label}-${++sent}`)
    const signature = signBody(text, tenant.hmac_secret)
    const begunMs = performance.now()
    const { status, retryAfter } = await postOnce(options.ingestUrl, agent, text, signature)
    tookMs.push(performance.now() - begunMs)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if ((status === 429 || status === 503) && retryAfter === undefined) bare++
  }
  let running = true
  const run = async () => {
    for (const startMs = performance.now(); running; await pause(tickMs)) {
      const due = ((performance.now() - startMs) / 1_000) * ratePerSecond
      while (sent < due) {
        const sending: Promise<void> = send(tenants[sent % tenants.length]!).finally(() => {
          open.delete(sending)
        })
        open.add(sending)
      }
    }
  }
  const ran = run()
  return {
    statuses,
    tookMs,
    bare: () => bare,
    stop: async () => {
      running = false
      await ran
      await Promise.all(open)
      agent.destroy()
    },
  }
}

/** A submission of 1.5 KB of a device of its own. */
export function toSteadyBody(tenantId: string, name: string): string {
  const extra = { padding }
  return toBody(tenantId, { device: `device-${name}`, session: `session-${name}`, extra })
}

/** @returns status 0 when there was no answer */
export function postOnce(
  ingestUrl: string,
  agent: Agent,
  body: string,
  signature: string,
): Promise<{ status: number; retryAfter: string | undefined }> {
  return new Promise((resolve) => {
    const sending = request(`${ingestUrl}/v1/rasp/ingest`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-signature': signature },
      timeout: answerLimitMs,
    })
    const none = () => resolve({ status: 0, retryAfter: undefined })
    sending.on('error', none)
    sending.on('timeout', () => sending.destroy(new Error('no answer')))
    sending.on('response', (response) => {
      response.resume()
      response.on('error', none)
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers['retry-after'],
        })
      })
    })
    sending.end(body)
  })
}
