// Three nats-servers with the configuration that deploy/cluster/ ships: the one that leads the
// telemetry stream is killed under load, and nothing that was accepted is lost or there twice.
// `npm run faults -- cluster` does the same at length, with every kind of fault.
import { randomInt } from 'node:crypto'
import { expect, it } from 'vitest'
import { telemetrySubject, tenantsBucket } from '#shared/core/messages.ts'
import { connectNats, type Nats } from '#shared/io/nats.ts'
import { ensureStreams, openTenantsBucket } from '#shared/io/streams.ts'
import { findBroken } from '../faults/cluster.ts'
import { runCluster } from '../faults/cluster-run.ts'
import { quietLog } from '../support/edge-rig.ts'
import { type NatsCluster, startNatsCluster } from '../support/nats-cluster.ts'
import { until } from '../support/until.ts'

it('migrate puts streams on three servers, and clients leave one that is cut off', async () => {
  const cluster = await startNatsCluster()
  try {
    const before = await connectNats(cluster.url, 'test', quietLog)
    await ensureStreams(before)
    expect(await listReplicas(before)).toEqual([1])
    const after = await connectNats(cluster.url, 'leaver', quietLog, 3)
    await ensureStreams(after)
    expect(await listReplicas(after)).toEqual([3])
    await before.manager.streams.delete(`KV_${tenantsBucket}`)
    await openTenantsBucket(after)
    // Somebody who was told nothing leaves everything where it is.
    await ensureStreams(before)
    expect(await listReplicas(after)).toEqual([3])
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
  await until('it is published', async () => (await publish()).seq === 1, 30_000)
  expect((await findNode())?.name).not.toBe(node!.name)
  await node!.mend()
}

/** On how many servers streams and buckets are, each number once. */
async function listReplicas(nats: Nats): Promise<number[]> {
  const numbers = new Set<number>()
  for await (const { config } of nats.manager.streams.list()) numbers.add(config.num_replicas)
  return [...numbers]
}

it('loses nothing and alerts once when the server that leads the stream is killed', async () => {
  const seed = randomInt(2 ** 31)
  const faults = [{ fault: 'leader killed' as const, lastsMs: 5_000 }]
  const result = await runCluster({ seed, faults, rate: 40, calmMs: 500 })
  expect(findBroken(result), `seed ${seed}`).toEqual([])
  expect(result.leaderChanges).toBe(1)
  expect(result.retriedPublishes).toBeGreaterThan(0)
}, 120_000)
