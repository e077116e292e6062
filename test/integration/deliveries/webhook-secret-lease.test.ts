// The lease of webhook secrets on a real PostgreSQL with the test's clock: after any slow reads,
// extensions, rotations and late uses, nothing signs with a secret whose rotation has returned.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import { lockSecretLease } from '#shared/io/deliveries/webhook-secret-lease.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createDeliveryFixtures } from '../../support/deliveries/delivery-fixtures.ts'
import { atTime } from '../../support/servers/database-clock.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let server: TestPostgres
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  const url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: createLog('test', 'silent') })
})

afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

type Step = { does: 'read' | 'use' | 'extend' | 'pass' | 'rotate'; process: number; ms: number }

const process = fc.constantFrom<number>(0, 1)
const ms = fc.constantFrom<number>(1, 40, 100, 160, 1_000, 5_000, 29_000, 299_000, 301_000)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ does: fc.constant('read' as const), process, ms }),
  fc.record({ does: fc.constant('use' as const), process, ms: fc.constant(0) }),
  fc.record({ does: fc.constant('extend' as const), process, ms }),
  fc.record({ does: fc.constant('pass' as const), process, ms }),
  fc.record({ does: fc.constant('rotate' as const), process, ms: fc.constant(0) }),
)

/** A read at the very end of an extension, which outlasts it. */
const lateReading: Step[] = [
  { does: 'extend', process: 0, ms: 29_000 },
  { does: 'pass', process: 0, ms: 299_000 },
  { does: 'read', process: 0, ms: 1 },
  { does: 'pass', process: 0, ms: 1_000 },
  { does: 'rotate', process: 0, ms: 0 },
  { does: 'pass', process: 0, ms: 160 },
  { does: 'use', process: 0, ms: 0 },
]

test('nothing signs with a secret whose rotation has returned', async () => {
  let [uses, extendedUses] = [0, 0]
  const run = async (steps: readonly Step[]) => {
    let nowMs = Date.parse('2031-01-01T00:00:00Z')
    const db = atTime(postgres, { nowMs: () => nowMs })
    const store = createDeliveryStore(db)
    await db.query(`update webhook_secret_lease set lease_ms = 1, extended_until = '-infinity'`)
    const { tenantId } = await createDeliveryFixtures(db).addTenant({ url: 'https://a.example/' })
    const readSecrets = new Map<number, { sealed: string; signUntilMs: number; leaseMs: number }>()
    /** When the rotation that replaced a secret returned. */
    const returnedMs = new Map<string, number>()
    const read = async () => {
      const { webhooks, secretLeaseMs } = await store.readWebhooks([tenantId])
      return { sealed: webhooks.get(tenantId)!.sealedSecret!, leaseMs: secretLeaseMs }
    }
    for (const one of steps) {
      if (one.does === 'pass') nowMs += one.ms
      if (one.does === 'extend') await store.extendSecretLease(one.ms)
      if (one.does === 'read') {
        // The database answers at some moment between the query and its result.
        const begunMs = nowMs
        nowMs += Math.floor(one.ms / 2)
        const found = await read()
        nowMs += Math.ceil(one.ms / 2)
        readSecrets.set(one.process, { ...found, signUntilMs: begunMs + found.leaseMs })
      }
      if (one.does === 'rotate') {
        const { sealed } = await read()
        const leaseMs = await db.transaction(async (tx) => {
          const wait = await lockSecretLease(tx)
          await createDeliveryFixtures(tx).rotateSecret(tenantId)
          return wait
        })
        returnedMs.set(sealed, nowMs + leaseMs)
      }
      const using = one.does === 'use' ? readSecrets.get(one.process) : undefined
      if (using !== undefined && nowMs < using.signUntilMs) {
        uses += 1
        if (using.leaseMs > 100) extendedUses += 1
        expect(nowMs).toBeLessThan(returnedMs.get(using.sealed) ?? Number.POSITIVE_INFINITY)
      }
    }
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), run), {
    numRuns: 60,
    examples: [[lateReading]],
  })
  expect(uses).toBeGreaterThan(20)
  expect(extendedUses).toBeGreaterThan(5)
})
