/** A whole local stack under load, with clients that check every response; optionally with kills. */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom, hashToUnit } from '../../../../deploy/fleet/phones/random.ts'
import {
  type DeliveryReceiver,
  type ReceivedDelivery,
  type Reply,
  receiveDeliveries,
} from '../../../../deploy/fleet/send/deliveries.ts'
import { createTenant, type Tenant } from '../../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../../support/process/stack.ts'
import { describeCounts } from '../counts.ts'
import { print } from '../drill.ts'
import { findBreaches, type StackFindings } from './find-breaches.ts'
import { type LoadOptions, type PhoneLoad, startPhoneLoad } from './phone-load.ts'
import { type ChildKill, childNames, killAtRandom } from './stack-children.ts'
import { type StackUsers, startStackUsers } from './users.ts'
import { type CounterWatch, watchCounters } from './watch-counters.ts'

/** The stack, and the clients that use and check it. */
export type StackUnderLoad = {
  running: TestStack
  tenants: Tenant[]
  load: PhoneLoad
  receiver: DeliveryReceiver
  users: StackUsers
  counters: CounterWatch
}

/** Effects of kills. A full run without one of them proves nothing. */
export type Evidence = {
  retriedPublishes: number
  duplicatePublishes: number
  redelivered: Record<'scorer' | 'decider' | 'delivery', number>
  /** Alerts that were raised again and already existed. */
  alertsAgain: number
  /** Tries without a response, and events that were accepted after a try with an unknown outcome. */
  lostAnswers: number
  resolved: number
}

const counted = [
  'di_ingest_publish_retries_total',
  'di_ingest_publish_duplicates_total',
  'di_consume_redelivered_total',
  'di_alerts_existing_total',
]

/** The processes with these counters, which are read once more before a kill. */
const counting: ReadonlySet<string> = new Set(['ingest', 'scorer', 'delivery'])

export type StackLoadOptions = Pick<LoadOptions, 'ratePerSecond' | 'eventsPerDevice'> & {
  seed: number
  tenants: number
}

const failedShare = 0.02
const cutShare = 0.01
const slowMaxMs = 40

/** Fails a small share of first attempts, to cause retries, and accepts the others slowly. */
async function chooseReply(
  seed: number,
  { deliveryId, arrivals }: ReceivedDelivery,
): Promise<Reply> {
  const share = arrivals === 1 ? hashToUnit(`${seed} ${deliveryId}`) : 1
  if (share < cutShare) return 'cut'
  if (share < cutShare + failedShare) return 'refuse'
  await pause(slowMaxMs * hashToUnit(deliveryId))
  return 'accept'
}

/** Runs `use` with its own stack and clients; stops all of them afterwards. */
export async function withStackUnderLoad<T>(
  options: StackLoadOptions,
  use: (world: StackUnderLoad) => Promise<T>,
): Promise<T> {
  const { seed, ratePerSecond, eventsPerDevice } = options
  const receiver = await receiveDeliveries({
    reply: (delivery) => chooseReply(seed, delivery),
    sinceStartMs: () => performance.now(),
  })
  const running = await startStack().catch(async (error: unknown) => {
    await receiver.close()
    throw error
  })
  try {
    const { stack } = running
    const tenants: Tenant[] = []
    for (let n = 0; n < options.tenants; n++) {
      const tenantId = `under-fire-${n}`
      const tenant = await createTenant(stack, tenantId, receiver.urlOf(tenantId))
      receiver.trust(tenantId, tenant.webhook_secret)
      tenants.push(tenant)
    }
    const load = startPhoneLoad({
      ingestUrl: stack.ingest,
      tenants,
      ratePerSecond,
      eventsPerDevice,
      random: createRandom(seed, 'load'),
    })
    const { devices } = load
    const users = startStackUsers({ stack, tenants, devices, random: createRandom(seed, 'users') })
    const counters = watchCounters(stack.internal, counted)
    try {
      return await use({ running, tenants, load, receiver, users, counters })
    } finally {
      await Promise.all([counters.stop(), users.stop()])
    }
  } finally {
    await running.discard()
    await receiver.close()
  }
}

/** Reads the effects of faults from the counters and the clients. */
function readEvidence({ counters, load }: StackUnderLoad): Evidence {
  const redelivered = (consumer: string) =>
    counters.totalOf('di_consume_redelivered_total', `consumer="${consumer}"`)
  const lost = ['cut', 'time limit'].map((outcome) => load.outcomes.get(outcome) ?? 0)
  return {
    retriedPublishes: counters.total('di_ingest_publish_retries_total'),
    duplicatePublishes: counters.total('di_ingest_publish_duplicates_total'),
    redelivered: {
      scorer: redelivered('scorer'),
      decider: redelivered('decider'),
      delivery: redelivered('delivery'),
    },
    alertsAgain: counters.total('di_alerts_existing_total'),
    lostAnswers: lost.reduce((sum, one) => sum + one, 0),
    resolved: load.resolved(),
  }
}

export type KillsOptions = StackLoadOptions & {
  /** Number of kills of each of the eight processes. */
  each: number
  /** Approximate duration of all kills. */
  seconds: number
  hurryClaims?: boolean
  onKill?: (kill: ChildKill, n: number) => void
  onStep?: (line: string) => void
}

export type KillsResult = {
  kills: ChildKill[]
  findings: StackFindings
  evidence: Evidence
  outcomes: ReadonlyMap<string, number>
  reads: ReadonlyMap<string, number>
  changes: ReadonlyMap<string, number>
  /** Webhooks that the receiver failed on purpose. */
  webhooksFailed: number
  tookMs: number
}

/** Runs on its own stack. */
export function killUnderLoad(options: KillsOptions): Promise<KillsResult> {
  const { seed, each, seconds, hurryClaims = false, onKill, onStep } = options
  return withStackUnderLoad(options, async (world) => {
    const { running, load, counters, users, receiver } = world
    const startedMs = performance.now()
    const kills = await killAtRandom(running, {
      each,
      children: childNames,
      random: createRandom(seed, 'kills'),
      meanGapMs: (1_000 * seconds) / (each * childNames.length),
      before: async (child) => {
        if (counting.has(child)) await counters.readNow(child)
      },
      openEvents: load.open,
      ...(onKill === undefined ? {} : { onKill }),
    })
    const random = createRandom(seed, 'comparison')
    const findings = await findBreaches({
      ...world,
      random,
      hurryClaims,
      ...(onStep === undefined ? {} : { onStep }),
    })
    await counters.readNow('ingest')
    const { reads, changes } = users
    return {
      kills,
      findings,
      evidence: readEvidence(world),
      outcomes: load.outcomes,
      reads,
      changes,
      webhooksFailed: receiver.received.faults,
      tookMs: performance.now() - startedMs,
    }
  })
}

/** @returns the effects that a full run must have and that did not occur */
export function judgeEvidence(evidence: Evidence, findings: StackFindings): string[] {
  const must: [string, number][] = [
    ['a publish was retried', evidence.retriedPublishes],
    ['a retried publish was already stored', evidence.duplicatePublishes],
    ['a message was redelivered to the scorer', evidence.redelivered.scorer],
    ['a message was redelivered to the decider', evidence.redelivered.decider],
    ['a hint was redelivered', evidence.redelivered.delivery],
    ['a request got no response', evidence.lostAnswers],
    ['an event was twice in the stream', findings.storedTwice],
    ['a webhook was sent again', findings.webhooksAgain],
  ]
  return must.filter(([, times]) => times === 0).map(([what]) => `never happened: ${what}`)
}

/** Prints the faults that clients observed, and the number of compared items. */
export function reportClients(stack: StackUnderLoad, findings: StackFindings): void {
  const evidence = readEvidence(stack)
  print(`tries: ${describeCounts(stack.load.outcomes)}`)
  print(`  accepted after a try with an unknown outcome: ${evidence.resolved}`)
  print(`publishes retried: ${evidence.retriedPublishes}`)
  print(`  already stored: ${evidence.duplicatePublishes}`)
  print(`redelivered to the scorer: ${evidence.redelivered.scorer}`)
  print(`accepted: ${findings.accepted}, in the stream more than once: ${findings.storedTwice}`)
  print(`alerts: ${findings.alerts}, webhooks: ${findings.webhooks}, devices: ${findings.devices}`)
}
