// The state machines in Postgres and NATS against their models, through random histories with several
// concurrent processes; `npm run faults -- machines` runs more of them. A failure prints its seed
// and the shortest history.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { drillLimitMs, drillOptions, tellCounts } from '../../faults/drill-options.ts'
import { runDelivery } from '../../faults/machines/delivery.ts'
import { runDisposition } from '../../faults/machines/disposition.ts'
import { runRotation } from '../../faults/machines/rotation.ts'
import { createConsoleRig } from '../../support/http/console-rig.ts'
import { seed } from '../../support/process/seed.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

/** A history on a database takes up to a thousand times as long as one without. */
const { runs } = drillOptions({ runs: 800 }, { runs: 10_000 })

let server: TestPostgres
let nats: TestNats
let postgres: Postgres

beforeAll(async () => {
  ;[server, nats] = await Promise.all([startPostgres(), startNats()])
  const url = await server.createMigratedDatabase()
  const log = createLog('test', 'silent')
  postgres = createPostgres(url, { role: 'test', log, connectionsMax: 12 })
})

afterAll(async () => {
  await postgres?.close()
  await Promise.all([server?.stop(), nats?.stop()])
})

it(
  'deliveries equal their model under claims, kills, late records and replays',
  async () => {
    const { seen } = await runDelivery({ runs: Math.ceil(runs / 10), seed }, postgres)
    tellCounts('delivery', seen)
    expect(seen).toMatchObject({
      claimed: expect.any(Number),
      'claim taken over': expect.any(Number),
      'outcome of a lost claim': expect.any(Number),
      replayed: expect.any(Number),
    })
  },
  drillLimitMs,
)

it(
  'concurrent dispositions of alerts keep seq, counters, history and audit correct',
  async () => {
    const { seen } = await runDisposition({ runs: Math.ceil(runs / 100), seed }, postgres)
    tellCounts('disposition', seen)
    expect(seen['judged by several at once']).toBeGreaterThan(0)
  },
  drillLimitMs,
)

it(
  'concurrent and interrupted rotations leave one secret everywhere',
  async () => {
    const rig = await createConsoleRig({ postgres: server, nats })
    try {
      const { seen } = await runRotation({ runs: Math.ceil(runs / 160), seed }, rig)
      tellCounts('rotation', seen)
      expect(Object.keys(seen).length).toBeGreaterThan(0)
    } finally {
      await rig.close()
    }
  },
  drillLimitMs,
)
