/**
 * `npm run faults -- projection [--rounds 4] [--seed S]`: the tenant directory in NATS is deleted,
 * emptied and falsified while three edges are under load. Prints the responses and the duration of
 * the repair. Exits with 1 when an accepted event is not in the stream, or an edge accepted a
 * replaced secret.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { splitProof } from '#shared/io/keys/proofs.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { until } from '../../support/process/until.ts'
import { count, describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { checkAttempts, type SeenRotation } from '../support/rotations/check-attempts.ts'
import { type EdgeProcesses, startEdgeProcesses } from '../support/rotations/edge-processes.ts'
import { type SignedLoad, startSignedLoad } from '../support/rotations/signed-load.ts'

const nowMs = () => performance.now()

type Damage = (rig: EdgeProcesses, before: string) => Promise<unknown>

/** `before` is the tenant's entry before its last rotation, with its proof. */
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

/** The responses around one damage. */
type Round = {
  name: string
  /** From the damage to the last refusal of the newest secret; 0 when there was none. */
  recoveredMs: number
  repairedMs: number
  statuses: Map<number, number>
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { rounds: 4, seed: randomSeed() })
  print(`${options.rounds} rounds, --seed ${options.seed}`)
  const rig = await startEdgeProcesses()
  try {
    const load = startSignedLoad({
      urls: rig.edges.map(({ url }) => url),
      tenantId: rig.tenantId,
      secret: rig.secret,
      pauseMs: 12,
      random: createRandom(options.seed, 'clients').next,
    })
    const rounds: Round[] = []
    const rotations: SeenRotation[] = []
    for (let round = 0; round < options.rounds; round++) {
      for (const [name, damage] of Object.entries(damages)) {
        const entry = await (await openTenantsBucket(rig.nats)).get(tenantKey(rig.tenantId))
        const before = entry!.string()
        rotations.push(await rotateOnce(rig, load, rotations.length))
        rounds.push(await applyDamage(rig, load, name, () => damage(rig, before)))
      }
    }
    await load.stop()
    const stored = await rig.readStored()
    const accepted = load.attempts.flatMap(({ eventId }) => (eventId === null ? [] : [eventId]))
    const lost = accepted.filter((eventId) => !stored.has(eventId)).length
    for (const name of Object.keys(damages)) report(name, rounds)
    const { oldAccepted } = checkAttempts(load.attempts, rotations)
    const falsified = oldAccepted.length
    print(`accepted ${accepted.length}, of these not in the stream: ${lost}`)
    print(`accepted with a secret that a rotation had replaced: ${falsified}`)
    reportBroken([
      ...(lost > 0 ? [`${lost} accepted events are not in the stream`] : []),
      ...(falsified > 0 ? [`${falsified} requests with a replaced secret were accepted`] : []),
    ])
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
  const newSecret = load.addSecret(secret!)
  load.disclose(newSecret)
  await pause(300)
  return { oldSecret, newSecret, begunMs, returnedMs }
}

/** A repair that takes longer fails the run. */
const recoveryLimitMs = 30_000
/** No refusal for this long after the repair means recovered: two leases. */
const calmMs = 4_000

async function applyDamage(
  rig: EdgeProcesses,
  load: SignedLoad,
  name: string,
  damage: () => Promise<unknown>,
): Promise<Round> {
  const from = load.attempts.length
  const newest = load.attempts.reduce((most, { secret }) => Math.max(most, secret), 0)
  const damagedMs = nowMs()
  await damage()
  const expected = JSON.stringify(await readEntry(rig))
  await until(
    'the projection is repaired',
    async () => {
      // `openTenantsBucket` would create the bucket, but the console must do that.
      const bucket = await rig.nats.jetstream.views.kv(tenantsBucket, { bindOnly: true })
      const entry = await bucket.get(tenantKey(rig.tenantId)).catch(() => null)
      return entry?.operation === 'PUT' && splitProof(entry.string()).text === expected
    },
    recoveryLimitMs,
  )
  const repairedMs = nowMs() - damagedMs
  await pause(calmMs)
  const seen = load.attempts.slice(from).filter(({ secret }) => secret === newest)
  const statuses = new Map<number, number>()
  let refusedMs = damagedMs
  for (const { status, endedMs } of seen) {
    count(statuses, status)
    if (status !== 200) refusedMs = Math.max(refusedMs, endedMs)
  }
  return { name, recoveredMs: refusedMs - damagedMs, repairedMs, statuses }
}

function report(name: string, rounds: Round[]): void {
  const own = rounds.filter((round) => round.name === name)
  const statuses = new Map<number, number>()
  for (const round of own) {
    for (const [status, times] of round.statuses) {
      count(statuses, status, times)
    }
  }
  const toTimes = (values: number[]) =>
    [0.5, 1].map((rank) => `${Math.round(percentile(values, rank))}`).join(' / ')
  print(`${name} (${own.length} times):`)
  print(`  repaired after, median / longest: ${toTimes(own.map((round) => round.repairedMs))} ms`)
  print(`  last refusal after: ${toTimes(own.map((round) => round.recoveredMs))} ms`)
  print(`  answers: ${describeCounts(statuses)}`)
}
