/**
 * An installation grows from one nats-server to three under load, by the steps of
 * deploy/cluster/README.md. Then everything is read back: each accepted event must be stored and
 * decided, and each alert that it deserves raised and delivered once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { until } from '../../support/process/until.ts'
import { type NatsCluster, startNatsCluster } from '../../support/servers/nats/nats-cluster.ts'
import { startFleetLoad, type Try } from '../cluster/load.ts'
import { type GrowRig, type Reconciled, startGrowRig } from './grow-rig.ts'

/**
 * `readme`: its steps. `on-its-store`, the way that loses: the single server is started as a member
 * of the cluster on its store, while something is undecided. `recover`: the same, and then a copy
 * of that store is started as a single server again.
 */
export type GrowthWay = 'readme' | 'on-its-store' | 'recover'

export type GrowthOptions = {
  seed: number
  /** Events per second. */
  rate: number
  /** Before the first step, between steps and after the last one. */
  calmMs: number
  way: GrowthWay
  onStep: (what: string) => void
}

export type Growth = {
  tries: readonly Try[]
  accepted: number
  /** Events that no edge accepted. */
  unaccepted: number
  /** What reconciliation knows of edges' 200s. */
  counted: number
  decided: number
  alerts: number
  /** Accepted events that are not stored. */
  lost: number
  /** Alerts that accepted events deserve and that are missing. */
  alertsMissing: number
  /** Events with two rows, sessions with two alerts, deliveries that arrived twice. */
  doubled: { events: number; alerts: number; webhooks: number }
  webhooksMissing: number
  seqGaps: number
  longestGapMs: number
  agrees: boolean
}

/** How long what was accepted may take to be stored, decided and delivered, at the most. */
const settleLimitMs = 120_000

export async function runGrowth(options: GrowthOptions): Promise<Growth> {
  const { next: random } = createRandom(options.seed, 'growth')
  const rig = await startGrowRig()
  const closing = [rig.stop]
  try {
    const load = startFleetLoad({
      urls: rig.edges.map(({ url }) => url),
      tenantId: rig.tenant.tenant_id,
      secret: rig.tenant.hmac_secret,
      ratePerSecond: options.rate,
      random,
    })
    closing.push(() => load.finish(0))
    await pause(options.calmMs)
    const move = options.way === 'readme' ? moveByTheReadme : startOnItsStore
    closing.push(await move(rig, options))
    await pause(options.calmMs)
    await load.finish(settleLimitMs)
    const accepted = load.sent.filter(({ eventId }) => eventId !== null)
    const due = accepted.filter(({ blocked }) => blocked).length
    const isSettled = async () => {
      const { agrees, hours } = await rig.reconcile()
      // Edges report their counts some seconds later.
      const known = Math.min(sumOf(hours, 'accepted'), sumOf(hours, 'decided'))
      return agrees && known >= accepted.length && sumOf(hours, 'delivered') >= due
    }
    await until('everything is delivered', isSettled, settleLimitMs).catch(() => undefined)
    return { ...(await judge(rig, load.sent)), tries: load.tries, ...toGap(load.tries) }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

type Move = (rig: GrowRig, options: GrowthOptions) => Promise<() => Promise<void>>

/** The steps of the README, in its order. */
const moveByTheReadme: Move = async (rig, { calmMs, onStep }) => {
  onStep('three servers with empty stores')
  const cluster = await startNatsCluster()
  try {
    onStep('the console stops')
    await rig.console.terminate()
    onStep('di move-nats prepare')
    await rig.di(['move-nats', 'prepare'], rig.consoleEnv(cluster))
    // So that there is something to wait for.
    rig.scorer.signal('SIGSTOP')
    await pause(calmMs)
    for (const [at, edge] of rig.edges.entries()) {
      onStep(`edge ${at + 1} restarts with the new NATS_URL`)
      await rig.moveTo(edge, cluster)
      await pause(calmMs)
    }
    onStep('di move-nats finish')
    const finishing = finishMove(rig, cluster)
    await pause(calmMs)
    rig.scorer.signal('SIGCONT')
    onStep((await finishing).trim().replaceAll('\n', '\n    '))
    for (const service of [rig.scorer, rig.delivery, rig.console]) {
      onStep(`${service.name} restarts with the new NATS_URL`)
      await rig.moveTo(service, cluster)
    }
    onStep('the old server stops')
    await rig.old.kill('SIGTERM')
    return cluster.stop
  } catch (error) {
    rig.scorer.signal('SIGCONT')
    await cluster.stop()
    throw error
  }
}

const startOnItsStore: Move = async (rig, { calmMs, onStep, way }) => {
  rig.scorer.signal('SIGSTOP')
  await pause(calmMs)
  onStep('the server is started as a member of a cluster, on its store')
  await rig.old.kill('SIGTERM')
  await rig.scorer.kill()
  const cluster = await startNatsCluster({ firstStore: rig.old.dir, looksAtStore: false })
  try {
    await rig.migrate(cluster, ['--new-streams'])
    const services = [rig.console, ...rig.edges, rig.scorer, rig.delivery]
    await Promise.all(services.map((service) => rig.moveTo(service, cluster)))
    if (way === 'recover') await recover(rig, cluster, onStep)
    return cluster.stop
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

async function recover(
  rig: GrowRig,
  cluster: NatsCluster,
  onStep: GrowthOptions['onStep'],
): Promise<void> {
  onStep('a copy of the store is started as a single server, with a scorer of its own')
  await rig.old.restart()
  const scorer = await rig.start('scorer')
  onStep((await finishMove(rig, cluster)).trim().replaceAll('\n', '\n    '))
  await scorer.terminate()
  await rig.old.kill('SIGTERM')
}

const finishMove = (rig: GrowRig, cluster: NatsCluster): Promise<string> =>
  rig.di(['move-nats', 'finish'], { NATS_URL: rig.old.url, NATS_TO_URL: cluster.url })

type Sent = Awaited<ReturnType<typeof startFleetLoad>>['sent']

async function judge(rig: GrowRig, sent: Sent): Promise<Omit<Growth, 'tries' | 'longestGapMs'>> {
  const accepted = sent.filter(({ eventId }) => eventId !== null)
  const events = await rig.readEvents()
  const alerts = await rig.readAlerts()
  const alertsOf = new Map<string, number>()
  for (const { sessionId } of alerts) alertsOf.set(sessionId, (alertsOf.get(sessionId) ?? 0) + 1)
  const webhooks = rig.countWebhooks()
  const { agrees, hours } = await rig.reconcile()
  const countTwice = (counts: Map<string, number>) =>
    [...counts.values()].filter((count) => count > 1).length
  const due = accepted.filter(({ blocked }) => blocked)
  return {
    accepted: accepted.length,
    unaccepted: sent.length - accepted.length,
    counted: sumOf(hours, 'accepted'),
    decided: sumOf(hours, 'decided'),
    alerts: alerts.length,
    lost: accepted.filter(({ eventId }) => !events.has(eventId!)).length,
    alertsMissing: due.filter(({ sessionId }) => !alertsOf.has(sessionId)).length,
    doubled: {
      events: countTwice(events),
      alerts: countTwice(alertsOf),
      webhooks: countTwice(webhooks),
    },
    webhooksMissing: Math.max(0, alerts.length - webhooks.size),
    seqGaps: alerts.filter(({ seq }, at) => seq !== at + 1).length,
    agrees,
  }
}

const sumOf = (hours: Reconciled['hours'], name: 'accepted' | 'decided' | 'delivered'): number =>
  hours.reduce((sum, hour) => sum + hour[name], 0)

/** The longest time between two acceptances that follow one another. */
function toGap(tries: readonly Try[]): { longestGapMs: number } {
  const at = tries.filter(({ status }) => status === 200).map((one) => one.begunMs + one.tookMs)
  at.sort((a, b) => a - b)
  return { longestGapMs: Math.max(0, ...at.slice(1).map((ms, n) => ms - at[n]!)) }
}
