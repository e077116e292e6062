// From one nats-server to three: the way of deploy/cluster/README.md loses and doubles nothing, and
// the way that loses everything is refused. `npm run faults -- grow-cluster` does the same for
// longer.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startStreamKeeper } from '#shared/io/nats/streams/stream-keeper.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { migrateStreams } from '../../../services/migrate/migrate-streams.ts'
import { findBroken } from '../../faults/grow-cluster/grow-cluster.ts'
import { runGrowth } from '../../faults/grow-cluster/run-growth.ts'
import { seed } from '../../support/process/seed.ts'
import { patientMs, until } from '../../support/process/until.ts'
import { type NatsCluster, startNatsCluster } from '../../support/servers/nats/nats-cluster.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

it('an installation grows under load: nothing is lost, nothing comes twice', async () => {
  const options = { seed, rate: 10, calmMs: 1_500, onStep: () => undefined }
  const growth = await runGrowth({ ...options, way: 'readme' })
  expect(findBroken(growth)).toEqual([])
})

it('a member of a cluster does not start on the store of a single server', async () => {
  const single = await startNats()
  const nats = await connectNats(single.url, 'test', quietLog)
  await ensureStreams(nats)
  await nats.close()
  await single.kill('SIGTERM')
  try {
    const starting = startNatsCluster({ firstStore: single.dir })
    await expect(starting).rejects.toThrow('is the store of a single server')
    await single.restart()
    const again = await connectNats(single.url, 'test', quietLog)
    expect((await again.manager.streams.info(telemetryStream)).config.name).toBe(telemetryStream)
    await again.close()
  } finally {
    await single.stop()
  }
})

describe('a cluster without streams, of an installation that has telemetry', () => {
  let cluster: NatsCluster
  let nats: Nats
  beforeAll(async () => {
    cluster = await startNatsCluster()
    nats = await connectNats(cluster.url, 'test', quietLog, 3)
  })
  afterAll(async () => {
    await nats?.close()
    await cluster?.stop()
  })

  const migrate = (mayBeNew: boolean) =>
    migrateStreams(
      { url: cluster.url, replicas: 3 },
      { log: quietLog, limitMs: patientMs, hadStreams: true, mayBeNew },
    )
  const find = () => nats.manager.streams.info(telemetryStream)

  it('is refused by migrate, which says what happened, unless streams are to be new', async () => {
    await expect(migrate(false)).rejects.toThrow('removes all streams in it 30 seconds later')
    await expect(find()).rejects.toThrow('not found')
    // A cluster that answers late has its streams from a try before the one that tells.
    await migrate(true)
    expect((await find()).config.num_replicas).toBe(3)
    expect(await migrate(false)).toEqual([])
  })

  it('is reported by the console, which makes the streams again', async () => {
    await nats.manager.streams.delete(telemetryStream)
    const lines: string[] = []
    const log = { warn: () => undefined, error: (line: string) => lines.push(line) }
    const metrics = createMetrics('test')
    const keeper = startStreamKeeper({
      findNats: () => nats,
      log: log as unknown as Log,
      metrics,
    })
    try {
      await until('the loss is reported', () =>
        lines.some((line) => line.includes('From one server to three')),
      )
      expect((await find()).config.num_replicas).toBe(3)
    } finally {
      await keeper.stop()
    }
  })
})
