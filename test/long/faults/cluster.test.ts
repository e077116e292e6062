// Three nats-servers with the shipped configuration of deploy/cluster/: the leader of the telemetry
// stream is killed under load, and no accepted event is lost or duplicated. `npm run faults --
// cluster` does the same for longer, with every kind of fault.
import { expect, it } from 'vitest'
import { telemetrySubject, tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreamsOnceFormed } from '#shared/io/nats/streams/ensure-streams.ts'
import { restoreTenantsBucket } from '#shared/io/nats/streams/restore-streams.ts'
import { findBroken } from '../../faults/cluster/cluster.ts'
import { runCluster } from '../../faults/cluster/run-cluster.ts'
import { seed } from '../../support/process/seed.ts'
import { until } from '../../support/process/until.ts'
import { type NatsCluster, startNatsCluster } from '../../support/servers/nats/nats-cluster.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

it('streams are put on three servers, and clients leave one that is cut off', async () => {
  const cluster = await startNatsCluster()
  try {
    const before = await connectNats(cluster.url, 'test', quietLog)
    await ensure(before)
    await areOn(before, 1)
    const after = await connectNats(cluster.url, 'leaver', quietLog, 3)
    await ensure(after)
    await areOn(after, 3)
    await before.manager.streams.delete(`KV_${tenantsBucket}`)
    await isGone(after, `KV_${tenantsBucket}`)
    await restoreTenantsBucket(after)
    await areOn(after, 3)
    // A process without a number of replicas leaves everything unchanged.
    await ensure(before)
    await areOn(after, 3)
    await before.close()
    await leavesCutOff(cluster, after)
    await after.close()
  } finally {
    await cluster.stop()
  }
})

async function leavesCutOff(cluster: NatsCluster, nats: Nats): Promise<void> {
  const findNode = async () => {
    const clients = await Promise.all(cluster.nodes.map((node) => node.listClients()))
    return cluster.nodes[clients.findIndex((names) => names.includes('leaver'))]
  }
  const node = await findNode()
  await node!.cut()
  const publish = () =>
    nats.jetstream.publish(telemetrySubject, '[]', { msgID: 'left', timeout: 1_000 })
  await until('it is published', async () => (await publish()).seq === 1)
  expect((await findNode())?.name).not.toBe(node!.name)
  await node!.mend()
}

const ensure = (nats: Nats) => ensureStreamsOnceFormed(nats, { log: quietLog, limitMs: 40_000 })

/** Another server may not have received the deletion yet. */
async function isGone(nats: Nats, stream: string): Promise<void> {
  const hears = () =>
    nats.manager.streams.info(stream).then(
      () => false,
      ({ code }: { code?: string }) => code === '404',
    )
  await until(`${stream} is gone`, hears)
}

/** A list omits streams without a leader at that moment, as after a change. */
async function areOn(nats: Nats, servers: number): Promise<void> {
  const found = new Map<string, number>()
  const all = async () => {
    found.clear()
    for await (const { config } of nats.manager.streams.list()) {
      found.set(config.name, config.num_replicas)
    }
    return found.size === 7
  }
  await until('every stream and bucket has a leader', all)
  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries([...found.keys()].map((name) => [name, servers])),
  )
}

it('loses nothing and alerts once when the leader of the stream is killed', async () => {
  const faults = [{ fault: 'leader killed' as const, lastsMs: 5_000 }]
  const result = await runCluster({ seed, faults, rate: 40, calmMs: 500 })
  expect(findBroken(result), `seed ${seed}`).toEqual([])
  // Servers that wait for a core elect once more.
  expect(result.leaderChanges).toBeGreaterThanOrEqual(1)
  expect(result.retriedPublishes).toBeGreaterThan(0)
})
