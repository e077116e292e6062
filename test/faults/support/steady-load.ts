/** Tenants that send at a constant rate, each submission once; counts statuses and times. */
import { Agent } from 'node:http'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry, type SentRequest } from '../../support/http/send-request.ts'
import { type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { count } from './counts.ts'

export type SteadyLoad = {
  /** Responses by status; 0 without one. */
  statuses: Map<number, number>
  tookMs: number[]
  /** Sends nothing new, and waits for the responses. */
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

/** Pads a body to about 1.5 KB. */
const padding = 'x'.repeat(1_150)
export const limitMs = 10_000
/** Maximum connections of one address that an edge accepts before the first signature. */
const connectionsMax = 256

/** Begins to send. */
export function startSteadyLoad({ tenants, ratePerSecond, ...options }: SteadyOptions): SteadyLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: connectionsMax })
  const statuses = new Map<number, number>()
  const tookMs: number[] = []
  let made = 0
  const loop = startOpenLoop(ratePerSecond, async () => {
    const tenant = tenants[made % tenants.length]!
    const body = toSteadyBody(tenant.tenant_id, `${options.label}-${++made}`)
    const secret = tenant.hmac_secret
    const sent = await postTelemetry(options.ingestUrl, { agent, body, secret, limitMs })
    tookMs.push(sent.tookMs)
    count(statuses, sent.status)
  })
  return {
    statuses,
    tookMs,
    stop: async () => {
      await loop.stop()
      agent.destroy()
    },
  }
}

/** A submission of 1.5 KB with its own device. */
export function toSteadyBody(tenantId: string, name: string): string {
  const extra = { padding }
  return toBody(tenantId, { device: `device-${name}`, session: `session-${name}`, extra })
}

/** Whether a refusal lacks the required `Retry-After`. */
export const lacksRetryAfter = ({ status, headers }: SentRequest): boolean =>
  (status === 429 || status === 503) && headers['retry-after'] === undefined
