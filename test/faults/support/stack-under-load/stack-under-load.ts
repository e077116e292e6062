/**
 * A whole local stack under open load while its processes are killed with kill -9 at random
 * moments; then everything is read back and compared with what the clients know.
 */
import { createRandom } from '../../../../services/fleet/phones/random.ts'
import { createTenant, type Tenant } from '../../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../../support/process/stack.ts'
import { findBreaches, type KillsFindings } from './find-breaches.ts'
import { type KillsLoad, type LoadOptions, startKillsLoad } from './phone-load.ts'
import { type ChildKill, childNames, killAtRandom } from './stack-children.ts'
import { type KillsUsers, startKillsUsers } from './users.ts'
import { type CounterWatch, watchCounters } from './watch-counters.ts'
import { type KillsReceiver, startKillsReceiver } from './webhook-receiver.ts'

/** Everything that uses a stack in a drill, and that remembers what it was told. */
export type KillsWorld = {
  running: TestStack
  tenants: Tenant[]
  load: KillsLoad
  receiver: KillsReceiver
  users: KillsUsers
  counters: CounterWatch
}

/** What must have happened at all, or the drill has shown nothing. */
export type Evidence = {
  retriedPublishes: number
  duplicatePublishes: number
  redelivered: Record<'scorer' | 'decider' | 'delivery', number>
  /** Alerts and deliveries that were there already when they were raised again. */
  alertsAgain: number
  /** Tries whose answer never came, and events that were accepted after such a try. */
  lostAnswers: number
  resolved: number
}

const counted = [
  'di_ingest_publish_retries_total',
  'di_ingest_publish_duplicates_total',
  'di_consume_redelivered_total',
  'di_alerts_existing_total',
]

/** Whose counters these are: read once more before they are killed. */
const counting: ReadonlySet<string> = new Set(['ingest', 'scorer', 'delivery'])

export type WorldOptions = Pick<LoadOptions, 'ratePerSecond' | 'eventsPerDevice'> & {
  seed: number
  tenants: number
}

/** Runs `use` with a stack of its own and everybody who uses it; ends all of it afterwards. */
export async function withWorld<T>(
  options: WorldOptions,
  use: (world: KillsWorld) => Promise<T>,
): Promise<T> {
  const { seed, ratePerSecond, eventsPerDevice } = options
  const receiver = await startKillsReceiver(seed)
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
      receiver.learnSecret(tenantId, tenant.webhook_secret)
      tenants.push(tenant)
    }
    const load = startKillsLoad({
      ingestUrl: stack.ingest,
      tenants,
      ratePerSecond,
      eventsPerDevice,
      random: createRandom(seed, 'load'),
    })
    const { devices } = load
    const users = startKillsUsers({ stack, tenants, devices, random: createRandom(seed, 'users') })
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

/** What the counters and the clients saw of faults. */
export function readEvidence({ counters, load }: KillsWorld): Evidence {
  const redelivered = (consumer: string) =>
    counters.totalOf('di_consume_redelivered_total', `consumer="${consumer}"`)
  const lost = ['cut', 'no answer'].map((outcome) => load.outcomes.get(outcome) ?? 0)
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

export type KillsOptions = WorldOptions & {
  /** Kills of each of the eight processes. */
  each: number
  /** Over about so many seconds. */
  seconds: number
  hurryClaims?: boolean
  onKill?: (kill: ChildKill, n: number) => void
  onStep?: (line: string) => void
}

export type KillsResult = {
  kills: ChildKill[]
  findings: KillsFindings
  evidence: Evidence
  outcomes: ReadonlyMap<string, number>
  reads: ReadonlyMap<string, number>
  changes: ReadonlyMap<string, number>
  webhooks: KillsReceiver['counts']
  tookMs: number
}

/** Runs the whole of it on a stack of its own. */
export function killUnderLoad(options: KillsOptions): Promise<KillsResult> {
  const { seed, each, seconds, hurryClaims = false, onKill, onStep } = options
  return withWorld(options, async (world) => {
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
      webhooks: receiver.counts,
      tookMs: performance.now() - startedMs,
    }
  })
}

/** @returns what a full run must have met and has not, in words */
export function judgeEvidence(evidence: Evidence, findings: KillsFindings): string[] {
  const must: [string, number][] = [
    ['a publish tried again', evidence.retriedPublishes],
    ['a publish whose ack was lost, found stored already', evidence.duplicatePublishes],
    ['a message delivered again to the scorer', evidence.redelivered.scorer],
    ['a message delivered again to the decider', evidence.redelivered.decider],
    ['a hint delivered again', evidence.redelivered.delivery],
    ['an answer that never came', evidence.lostAnswers],
    ['an event stored twice in the stream', findings.storedTwice],
    ['a webhook sent again', findings.webhooksAgain],
  ]
  return must.filter(([, times]) => times === 0).map(([what]) => `never happened: ${what}`)
}
