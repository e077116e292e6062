// Changes of tenants always find a connection for their lock, whatever else of the console uses
// connections, and however many changes of another tenant wait.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { changeLocksMax, jobLocksMax } from '#shared/core/base/limits/tenants.ts'
import { tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { createLockPools, type LockPools } from '../../../services/console/tenants/lock-pools.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let servers: { postgres: TestPostgres; nats: TestNats }
let rig: ConsoleRig
let postgres: Postgres
let pools: LockPools

beforeAll(async () => {
  const [server, nats] = await Promise.all([startPostgres(), startNats()])
  servers = { postgres: server, nats }
  rig = await createConsoleRig(servers)
  await rig.startEdge()
  postgres = createPostgres(rig.postgresUrl, { role: 'test', log: testLog })
  pools = createLockPools(rig.postgresUrl, { name: 'test', work: postgres, log: testLog })
  for (const tenantId of ['acme', 'globex']) {
    const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
    await createTenant(rig.deps, { ...made, tenantId })
  }
})
afterAll(async () => {
  await pools?.close()
  await postgres?.close()
  await rig?.close()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})

const rotateTenant = (tenantId: string) =>
  rotate(
    { ...rig.deps, locks: pools.changes },
    { tenantId, actor: 'test', hmac: true, webhook: false, apiKey: false },
  )

/** Holds locks until it is called off. */
async function holdJobs(count: number): Promise<() => Promise<unknown>> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let heldCount = 0
  const holding = Array.from({ length: count }, (_, n) =>
    tryNamedLock(pools.jobs, `job ${n}`, async () => {
      heldCount++
      await ended
    }),
  )
  await until('all are held', () => heldCount === count)
  return async () => {
    end()
    await Promise.all(holding)
  }
}

it('a rotation returns while erasures, backtests and jobs use all their connections', async () => {
  const end = await holdJobs(jobLocksMax)
  try {
    const rotated = await rotateTenant('acme')
    expect(rotated.hmac_secret).toHaveLength(43)
  } finally {
    await end()
  }
})

it('a rotation returns while changes of another tenant wait for one that hangs', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const hanging = withTenantLock(pools.changes, 'globex', () => ended)
  const waiting = Array.from({ length: 3 * changeLocksMax }, () => rotateTenant('globex'))
  try {
    const startMs = performance.now()
    expect((await rotateTenant('acme')).hmac_secret).toHaveLength(43)
    expect(performance.now() - startMs).toBeLessThan(8_000)
  } finally {
    end()
    await hanging
  }
  // The waiting ones come one after another, and some may have reached their time limit.
  const outcomes = await Promise.allSettled(waiting)
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []))
  expect(new Set(failures).size).toBeLessThan(2)
  expect(failures.every((code) => code === 'conflict')).toBe(true)
  expect(outcomes.length).toBeGreaterThan(failures.length)
})
