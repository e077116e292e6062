/**
 * The whole service on two ClickHouse engines, as `npm start -- --shards 2` starts it: a small
 * fleet finds everything in place although an engine is killed meanwhile, and the counts of all
 * stages agree.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import type { Summary } from '../../deploy/fleet/check/summary.ts'
import { admin } from '../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../support/process/stack.ts'
import { until } from '../support/process/until.ts'

const cli = fileURLToPath(new URL('../../services/console/cli.ts', import.meta.url))
let running: TestStack

beforeAll(async () => {
  running = await startStack({ args: ['--shards', '2'] })
})
afterAll(() => running?.discard())

it('lists both engines, and each has a folder and a process', () => {
  const { stack, dataDir } = running
  expect(stack.clickhouse_shards).toHaveLength(2)
  expect(stack.clickhouse_shards![0]).toBe(stack.clickhouse)
  expect(running.output()).toMatch(/shard +2 of 2 of clickhouse: http/)
  expect(stack.pids['clickhouse-2']).toBeGreaterThan(0)
  expect(existsSync(join(dataDir, 'clickhouse-2', 'store'))).toBe(true)
  expect(stack).not.toHaveProperty('analysts')
})

it('has no analysts, and the problem names the reason', async () => {
  const path = `/tenants/${running.stack.demo.tenant_id}/analysts`
  const create = admin(running.stack, 'POST', path, { name: 'grafana' })
  await expect(create).rejects.toThrow(/analysts_not_possible|on one node/)
})

it('has everything in place after a fleet, although an engine was killed meanwhile', async () => {
  const before = running.stack.pids['clickhouse-2']!
  const run = ['--devices', '40', '--rate', '50', '--duration', '6', '--seed', '7', '--receive']
  const fleet = promisify(execFile)(process.execPath, [cli, 'fleet', '--json', ...run], {
    env: { ...process.env, DATA_DIR: running.dataDir },
  })
  await until('the fleet is under way', async () => (await countEvents()) > 50)
  process.kill(before, 'SIGKILL')
  await until('the engine runs again', () => running.stack.pids['clickhouse-2'] !== before)
  const summary = JSON.parse((await fleet).stdout) as Summary
  expect(summary).toMatchObject({ sent: 300, accepted: 300, mismatches: [], ok: true })
  expect(summary.alerts!.total).toBeGreaterThan(5)

  const since = new Date().toISOString()
  const counts = await until('reconciliation', async () => {
    const path = `/tenants/${summary.tenant_id}/reconciliation`
    const view = await admin<ReconciliationView>(running.stack, 'GET', path)
    return (view.as_of ?? '') > since ? view : null
  })
  expect(counts.agrees).toBe(true)
  expect(counts.data.reduce((sum, { stored }) => sum + stored, 0)).toBe(300)
})

/** Of the first engine. */
async function countEvents(): Promise<number> {
  const { origin, username, password } = new URL(running.stack.clickhouse)
  const response = await fetch(`${origin}/?database=device_intelligence`, {
    method: 'POST',
    headers: { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password },
    body: 'select count() from telemetry',
  })
  return Number(await response.text())
}
