/**
 * `npm run faults -- projection [--rounds 4] [--seed S]`: the tenant directory's projection in NATS
 * is deleted, emptied and falsified while three edges are under load. Prints what clients saw and
 * how long it took until every edge answered all of them again; ends with status 1 when an event
 * that was accepted is not in the stream, or an edge accepted what it must not.
 */

import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { splitProof } from '#shared/io/tenants/directory/proofs.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { until } from '../../support/process/until.ts'
import { checkAttempts, type SeenRotation } from '../support/rotations/check-attempts.ts'
import { type EdgeProcesses, startEdgeProcesses } from '../support/rotations/edge-processes.ts'
import { type SignedLoad, startSignedLoad } from '../support/rotations/signed-load.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const nowMs = () => performance.now()

type Damage = (rig: EdgeProcesses, before: string) => Promise<unknown>

/**
 * What is done to the projection; `before` is the text of the tenant's entry, proof and all, of
 * before its last rotation.
 */
const damages: Record<string, Damage> = {
  'bucket deleted': ({ nats }) => nats.manager.streams.delete(`KV_${tenantsBucket}`),
  'bucket purged': ({ nats }) => nats.manager.streams.purge(`KV_${tenantsBucket}`),
  'tenant deleted': async ({ nats, tenantId }) =>
    (await openTenantsBucket(nats)).delete(tenantKey(tenantId)),
  'entry is garbage': async ({ nats, tenantId }) =>
    (await openTenantsBucket(nats)).put(tenantKey(tenantId), '{"tenant_id":'),
  'entry is old': async ({ nats, tenantId }, before) =>
    (await openTenantsBucket(nats)).put(tenantKey(tenantId), before),
}

/** All that clients saw of one damage. */
type Round = {
  name: string
  /** From the damage to the last refusal of the newest secret; 0 when there was none. */
  recoveredMs: number
  repairedMs: number
  statuses: Map<number, number>
}

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '4' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  say(`${values.rounds} rounds, --seed ${values.seed}`)
  const rig = await startEdgeProcesses()
  try {
    const load = startSignedLoad({
      urls: rig.edges.map(({ url }) => url),
      tenantId: rig.tenantId,
      secret: rig.secret,
      pauseMs: 12,
      random: createRandom(Number(values.seed), 'clients').next,
    })
    const rounds: Round[] = []
    const rotations: SeenRotation[] = []
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [name, damage] of Object.entries(damages)) {
        const held = await (await openTenantsBucket(rig.nats)).get(tenantKey(rig.tenantId))
        const before = held!.string()
        rotations.push(await rotateOnce(rig, load, rotations.length))
        rounds.push(await suffer(rig, load, name, () => damage(rig, before)))
      }
    }
    await load.stop()
    const stored = await rig.readStored()
    const accepted = load.attempts.flatMap(({ eventId }) => (eventId === null ? [] : [eventId]))
    const lost = accepted.filter((eventId) => !stored.has(eventId)).length
    for (const name of Object.keys(damages)) report(name, rounds)
    const { oldAccepted } = checkAttempts(load.attempts, rotations)
    const falsified = oldAccepted.length
    say(`accepted ${accepted.length}, of these not in the stream: ${lost}`)
    say(`accepted with a secret that a rotation had replaced: ${falsified}`)
    if (lost > 0 || falsified > 0) process.exitCode = 1
  } finally {
    await rig.stop()
  }
}

const readEntry = async ({ postgres, tenantId }: EdgeProcesses) =>
  (await createTenantStore(postgres).findProjection(tenantId))!.entry

async function rotateOnce(
  rig: EdgeProcesses,
  load: SignedLoad,
  oldSecret: number,
): Promise<SeenRotation> {
  const begunMs = nowMs()
  const { hmac_secret: secret } = await rig.rotate({ hmac: true })
  const returnedMs = nowMs()
  const newSecret = load.learn(secret!)
  load.disclose(newSecret)
  await pause(300)
  return { oldSecret, newSecret, begunMs, returnedMs }
}

/** What an edge that is not well again after this never will be. */
const recoveryLimitMs = 30_000
/** No refusal for this long, after the repair, means recovered: two leases. */
const calmMs = 4_000

async function suffer(
  rig: EdgeProcesses,
  load: SignedLoad,
  name: string,
  damage: () => Promise<unknown>,
): Promise<Round> {
  const from = load.attempts.length
  const newest = load.attempts.reduce((most, { secret }) => Math.max(most, secret), 0)
  const damagedMs = nowMs()
  await damage()
  const wanted = JSON.stringify(await readEntry(rig))
  await until(
    'the projection is repaired',
    async () => {
      // Not `openTenantsBucket`: it would make the bucket anew, and that is others' work.
      const bucket = await rig.nats.jetstream.views.kv(tenantsBucket, { bindOnly: true })
      const entry = await bucket.get(tenantKey(rig.tenantId)).catch(() => null)
      return entry?.operation === 'PUT' && splitProof(entry.string()).text === wanted
    },
    recoveryLimitMs,
  )
  const repairedMs = nowMs() - damagedMs
  await pause(calmMs)
  const seen = load.attempts.slice(from).filter(({ secret }) => secret === newest)
  const statuses = new Map<number, number>()
  let refusedMs = damagedMs
  for (const { status, endedMs } of seen) {
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status !== 200) refusedMs = Math.max(refusedMs, endedMs)
  }
  return { name, recoveredMs: refusedMs - damagedMs, repairedMs, statuses }
}

function report(name: string, rounds: Round[]): void {
  const own = rounds.filter((round) => round.name === name)
  const statuses = new Map<number, number>()
  for (const round of own) {
    for (const [status, count] of round.statuses) {
      statuses.set(status, (statuses.get(status) ?? 0) + count)
    }
  }
  const times = (values: number[]) =>
    [0.5, 1].map((rank) => `${Math.round(percentile(values, rank))}`).join(' / ')
  say(`${name} (${own.length} times):`)
  say(`  repaired after, median / longest: ${times(own.map((round) => round.repairedMs))} ms`)
  say(`  last refusal after: ${times(own.map((round) => round.recoveredMs))} ms`)
  const answers = [...statuses].sort(([a], [b]) => a - b)
  say(`  answers: ${answers.map(([status, count]) => `${status}: ${count}`).join(', ')}`)
}
