/**
 * Alerts to a faulty receiver while the delivery process is killed repeatedly, until the last
 * delivery has ended. Retries would take hours, so waiting ones are made due whenever few are due.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { publishDeliveryHints } from '#shared/io/deliveries/publish-hints.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { makeAlertCandidates } from '../../support/deliveries/delivery-alerts.ts'
import type { Kill, RaisedDelivery, StoredDelivery } from './check-deliveries.ts'
import type { SeenRequest } from './receiver.ts'
import { type DeliveryRig, type RigOptions, startDeliveryRig } from './rig.ts'

export type KillsOptions = RigOptions & {
  alerts: number
  kills: number
  /** Whether to end the claims of a killed process at once; for one process alone. */
  hurryClaims: boolean
}

export type UnderKills = {
  raised: RaisedDelivery[]
  requests: SeenRequest[]
  stored: StoredDelivery[]
  kills: Kill[]
}

/** @throws when a delivery process ends by itself, or nothing is delivered for a long time */
export async function deliverUnderKills(options: KillsOptions): Promise<UnderKills> {
  const rig = await startDeliveryRig(options)
  const run: Run = {
    rig,
    options,
    raised: [],
    kills: [],
    over: false,
    claimsLeft: new Set(),
  }
  try {
    await Promise.all(
      [raiseAll(run), killAll(run), makeRetriesDue(run)].map((work) => orEnd(run, work)),
    )
    // Everything is recorded; now the processes end on purpose.
    for (const { kill } of rig.processes) await kill()
    const requests = await rig.receiver.end()
    const { raised, kills } = run
    return { raised, requests, stored: await readStored(rig), kills }
  } finally {
    await rig.stop()
  }
}

type Run = Pick<UnderKills, 'raised' | 'kills'> & {
  rig: DeliveryRig
  options: KillsOptions
  over: boolean
  /** Claims of killed processes, as `delivery claim`. */
  claimsLeft: Set<string>
}

/** Stops the other work when one part fails. */
async function orEnd(run: Run, work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    run.over = true
    throw error
  }
}

/** Alerts waiting to be sent: enough to keep every queue busy. */
const backlogMax = 6_000
const raiseBatch = 250

async function raiseAll(run: Run): Promise<void> {
  const { rig, options } = run
  const candidates = makeAlertCandidates(rig.tenantIds, options.alerts, options.seed)
  for (let at = 0; at < candidates.length && !run.over; ) {
    if (run.raised.length - rig.receiver.progress().delivered > backlogMax) {
      await pause(20)
      continue
    }
    const batch = candidates.slice(at, at + raiseBatch)
    const { raised } = await raiseAlerts(rig.postgres, batch, Date.now)
    run.raised.push(...raised)
    await publishDeliveryHints(rig.nats, raised, () => undefined)
    at += batch.length
  }
}

/**
 * Spreads the kills over all deliveries, each at a random moment and only after the process has
 * sent something since its start.
 */
async function killAll(run: Run): Promise<void> {
  const { rig, options } = run
  const random = createRandom(options.seed, 'kills')
  const requestsAtStart = rig.processes.map(() => 0)
  for (let at = 0; at < options.kills; at++) {
    const threshold = ((at + random.next()) / options.kills) * options.alerts * 0.98
    const which = at % rig.processes.length
    while (!run.over) {
      const { delivered, requests } = rig.receiver.progress()
      if (delivered >= threshold && requests > requestsAtStart[which]! + 20) break
      await pause(5)
    }
    if (run.over) return
    await pause(random.int(0, 150))
    run.kills.push(await killOnce(run, which))
    requestsAtStart[which] = rig.receiver.progress().requests
  }
}

async function killOnce({ rig, options, claimsLeft }: Run, which: number): Promise<Kill> {
  const victim = rig.processes[which]!
  const sentMs = Date.now()
  await victim.kill()
  await rig.settle()
  const settledMs = Date.now()
  const { rows } = await rig.postgres.query<{ delivery_id: string; claimed_by: string }>(
    'select delivery_id, claimed_by from deliveries where claimed_by is not null',
  )
  const orphans = new Set<string>()
  for (const { delivery_id, claimed_by } of rows) {
    const claim = `${delivery_id} ${claimed_by}`
    // A claim left behind by an earlier kill counts for that one. With two processes it may have
    // belonged to the other one then.
    if (!claimsLeft.has(claim) || rig.processes.length > 1) orphans.add(delivery_id)
    claimsLeft.add(claim)
  }
  if (options.hurryClaims) {
    await rig.postgres.query(
      'update deliveries set claimed_until = now() where claimed_by is not null',
    )
  }
  victim.start()
  return { sentMs, settledMs, orphans }
}

/** With fewer due deliveries the queues are almost empty. */
const dueFew = 100
/** Longer than a claim and a hanging request together. */
const stuckMs = 90_000

/** Makes waiting retries due whenever few are due, until every delivery has ended. */
async function makeRetriesDue(run: Run): Promise<void> {
  const { rig, options } = run
  let progressMs = performance.now()
  let best = -1
  while (!run.over) {
    await pause(options.hurryClaims ? 100 : 500)
    for (const { hasEndedByItself, output } of rig.processes) {
      if (hasEndedByItself()) throw new Error(`a delivery process ended by itself:\n${output()}`)
    }
    const { rows } = await rig.postgres.query<Record<'due' | 'waiting' | 'claimed', number>>(
      `select count(*) filter (where claimed_by is null and due_at <= now()) as due,
         count(*) filter (where claimed_by is null and due_at > now()) as waiting,
         count(*) filter (where claimed_by is not null) as claimed
       from deliveries where state = 'pending'`,
    )
    const { due, waiting, claimed } = rows[0]!
    const isRaised = run.raised.length === options.alerts
    if (isRaised && run.kills.length === options.kills && due + waiting + claimed === 0) return
    if (due < dueFew && waiting > 0) await pullForward(run)
    const { delivered } = rig.receiver.progress()
    if (delivered > best) progressMs = performance.now()
    best = Math.max(best, delivered)
    if (performance.now() - progressMs > stuckMs) {
      const outputs = rig.processes.map(({ output }) => output())
      throw new Error(`stuck: ${due} due, ${waiting} waiting, ${claimed} claimed\n${outputs}`)
    }
  }
}

async function pullForward({ rig: { postgres } }: Run): Promise<void> {
  // Skips locked rows, so that the delivery process never waits for the drill.
  await postgres.query(
    `update deliveries set due_at = now() where delivery_id in (
       select delivery_id from deliveries
       where state = 'pending' and claimed_by is null and due_at > now()
       for update skip locked)`,
  )
  await postgres.query(
    'update webhooks set circuit_open_until = null where circuit_open_until is not null',
  )
}

async function readStored({ postgres }: DeliveryRig): Promise<StoredDelivery[]> {
  const { rows } = await postgres.query<{
    delivery_id: string
    state: string
    attempts: number
    sha256: string
    records: { attempt: number; status: number | null; error_kind: string | null }[]
  }>(
    `select d.delivery_id, d.state, d.attempts, encode(sha256(d.body), 'base64') as sha256,
       coalesce(r.records, '[]') as records
     from deliveries as d
     left join (
       select delivery_id, json_agg(json_build_object(
         'attempt', attempt, 'status', status, 'error_kind', error_kind) order by attempt) as records
       from delivery_attempts group by delivery_id
     ) as r using (delivery_id)`,
  )
  return rows.map(({ delivery_id, records, ...row }) => ({
    ...row,
    deliveryId: delivery_id,
    records: records.map(({ attempt, status, error_kind }) => ({
      attempt,
      status,
      errorKind: error_kind,
    })),
  }))
}
