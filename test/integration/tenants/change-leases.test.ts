// Changes of a tenant come one after another, and wait for nothing else: not for jobs under leases,
// and not for changes of another tenant, however many wait there.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withLease } from '#shared/io/leases/leases.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { rotate } from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, startConsoleRig } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

/** More than the connections of a pool. */
const many = 30

let rig: ConsoleRig

beforeAll(async () => {
  rig = await startConsoleRig()
  await rig.startEdge()
  for (const tenantId of ['acme', 'globex']) {
    const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
    await createTenant(rig.deps, { ...made, tenantId })
  }
})
afterAll(() => rig?.close())

const rotateTenant = (tenantId: string, waitMs?: number) =>
  rotate(
    { ...rig.deps, leases: { ...rig.deps.leases, ...(waitMs === undefined ? {} : { waitMs }) } },
    { tenantId, actor: 'test', hmac: true, webhook: false, apiKey: false },
  )

/** Holds leases until it is called off. */
async function holdJobs(count: number): Promise<() => Promise<unknown>> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let heldCount = 0
  const holding = Array.from({ length: count }, (_, n) =>
    withLease(rig.deps.leases, `job ${n}`, async () => {
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

it('a rotation returns while erasures, backtests and jobs have leases', async () => {
  const end = await holdJobs(many)
  try {
    const rotated = await rotateTenant('acme')
    expect(rotated.hmac_secret).toHaveLength(43)
  } finally {
    await end()
  }
})

it('a rotation returns while changes of another tenant wait for one that hangs', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const hanging = withTenantLease(rig.deps.leases, 'globex', () => ended)
  const waiting = Array.from({ length: many }, () => rotateTenant('globex', 600_000))
  try {
    // None of the others gives up within this test.
    expect((await rotateTenant('acme')).hmac_secret).toHaveLength(43)
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
