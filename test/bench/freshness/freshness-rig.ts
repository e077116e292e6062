/** The parts of the freshness benchmarks beside a stack: a receiver, a fleet and a tenant. */
import { randomBytes } from 'node:crypto'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTenant, type Tenant } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { type BenchChild, forkChild } from '../measured-process.ts'

export type FreshnessRig = {
  test: TestStack
  tenant: Tenant
  receiver: BenchChild
  fleet: BenchChild
  clickhouse: Clickhouse
}

/** @param closing gets the end of each part, in the order of their starts */
export async function openFreshnessRig(
  test: TestStack,
  closing: (() => unknown)[],
): Promise<FreshnessRig> {
  const { worker: receiver, first } = await forkChild('./freshness/freshness-receiver.ts')
  closing.push(receiver.stop)
  const { worker: fleet } = await forkChild('./freshness/freshness-load.ts')
  closing.push(fleet.stop)
  const url = `http://127.0.0.1:${(first as { port: number }).port}/hook`
  const tenant = await createTenant(test.stack, `fresh-${randomBytes(4).toString('hex')}`, url)
  await receiver.request({ secret: tenant.webhook_secret })
  const clickhouse = createClickhouse(test.stack.clickhouse, { name: 'bench' })
  closing.push(() => clickhouse.close())
  return { test, tenant, receiver, fleet, clickhouse }
}
