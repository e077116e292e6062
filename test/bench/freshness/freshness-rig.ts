/** What the benchmarks of freshness run beside a stack: a receiver, a fleet, a tenant of their own. */
import { randomBytes } from 'node:crypto'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTenant, type Tenant } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { type AskedChild, forkAsked } from '../measured-process.ts'

export type FreshnessRig = {
  test: TestStack
  tenant: Tenant
  receiver: AskedChild
  fleet: AskedChild
  clickhouse: Clickhouse
}

/** @param closing gets what ends each part, in the order in which they were opened */
export async function openFreshnessRig(
  test: TestStack,
  closing: (() => unknown)[],
): Promise<FreshnessRig> {
  const { asked: receiver, first } = await forkAsked('./freshness/freshness-receiver.ts')
  closing.push(receiver.stop)
  const { asked: fleet } = await forkAsked('./freshness/freshness-load.ts')
  closing.push(fleet.stop)
  const url = `http://127.0.0.1:${(first as { port: number }).port}/hook`
  const tenant = await createTenant(test.stack, `fresh-${randomBytes(4).toString('hex')}`, url)
  await receiver.ask({ secret: tenant.webhook_secret })
  const clickhouse = createClickhouse(test.stack.clickhouse, { name: 'bench' })
  closing.push(() => clickhouse.close())
  return { test, tenant, receiver, fleet, clickhouse }
}
