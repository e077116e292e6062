/** The state of one run: its options, inputs and measurements. */
import type { FleetContext } from './fleet-context.ts'
import type { FleetTenant } from './fleet-tenant.ts'
import type { Plan } from './phones/plan.ts'
import type { DeliveryReceiver } from './send/deliveries.ts'
import type { Latencies } from './send/latencies.ts'
import type { Screen } from './send/live-line.ts'
import type { SentEvents } from './send/sent-events.ts'

export type FleetOptions = {
  tenant?: string | undefined
  hmacSecretFile?: string | undefined
  apiKeyFile?: string | undefined
  webhookSecretFile?: string | undefined
  ingestUrl?: string | undefined
  apiUrl?: string | undefined
  devices: number
  ratePerSecond: number
  durationMs: number
  seed: number
  receive: boolean
  /** Share of webhooks that are answered 500. */
  receiveFaults: number
  settleMs: number
}

export type FleetDeps = {
  context: FleetContext
  screen: Screen
  nowMs: () => number
  monotonicMs: () => number
  /** Ends the run early; events that were sent are still checked. */
  stop: AbortSignal
  /** Makes the slug of a fresh tenant unique. */
  newSuffix: () => string
}

export type Run = FleetDeps & {
  urls: Urls
  options: FleetOptions
  plan: Plan
  tenant: FleetTenant
  receiver: DeliveryReceiver | null
  sentEvents: SentEvents
  latencies: Latencies
  visible: Latencies
  live: Latencies
  startedAtMs: number
  sinceStartMs: () => number
}

export type Urls = { ingest: string; api: string }
