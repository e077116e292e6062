// A ClickHouse whose default profile is as far from ours as it can be: what our clients write and read
// is as on any other server, and what a profile fixes is refused by name.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pinnedClickhouseSettings } from '#shared/core/base/clickhouse-settings.ts'
import {
  type Clickhouse,
  checkClickhouse,
  createClickhouse,
} from '#shared/io/clickhouse/clickhouse.ts'
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import {
  asStranger,
  hostileClickhouse,
  toEngineUser,
} from '../../support/servers/hostile-settings.ts'

let server: TestClickhouse
let url: string
let clickhouse: Clickhouse

beforeAll(async () => {
  server = await startClickhouse({ users: [toEngineUser(hostileClickhouse)] })
  url = asStranger(server.url)
  clickhouse = createClickhouse(url, { name: 'test', database: 'default' })
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

describe('a client of ours', () => {
  it('has every pinned setting tried', () => {
    expect(Object.keys(hostileClickhouse).sort()).toEqual(
      Object.keys(pinnedClickhouseSettings).sort(),
    )
  })

  it('has our value of each setting, whatever the profile says', async () => {
    const result = await clickhouse.query({
      query: `select name, value from system.settings where name in {names:Array(String)}`,
      query_params: { names: Object.keys(pinnedClickhouseSettings) },
      format: 'JSONEachRow',
    })
    const rows = await result.json<{ name: string; value: string }>()
    expect(Object.fromEntries(rows.map(({ name, value }) => [name, value]))).toEqual(
      Object.fromEntries(
        Object.entries(pinnedClickhouseSettings).map(([name, value]) => [name, String(value)]),
      ),
    )
  })

  it('is the only one that such a server answers', async () => {
    const { origin, username, password } = new URL(url)
    const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password }
    const response = await fetch(origin, { method: 'POST', headers, body: 'select 1 as one' })
    expect(response.status).toBe(500)
  })

  it('migrates', async () => {
    await migrateClickhouse(url)
    await migrateClickhouse(url)
  })
})

describe('a profile that fixes a setting', () => {
  const names = ['join_use_nulls', 'result_overflow_mode']
  const ours = Object.fromEntries(names.map((name) => [name, pinnedClickhouseSettings[name]!]))
  const why = /does not let this user set \w+ = '.*': take its constraint, or readonly = 1,/

  it.each([
    ['to another value, is refused', toEngineUser({ join_use_nulls: 1 }, ['join_use_nulls']), why],
    ['by being read-only, is refused', toEngineUser({ readonly: 1, join_use_nulls: 1 }), why],
    ['to our value, is not refused', toEngineUser(ours, names), null],
  ])('%s by name, by migrate and by readiness', async (_, user, refused) => {
    const other = await startClickhouse({ users: [user] })
    const client = createClickhouse(asStranger(other.url), { name: 'test', database: 'default' })
    try {
      const fault = await until('it answers in time', async () => {
        const found = await checkClickhouse(client)
        return found === 'cannot be reached' ? null : { found }
      })
      const migrated = await migrateClickhouse(asStranger(other.url)).then(
        () => null,
        (error: unknown) => error,
      )
      if (refused === null) expect([fault.found, migrated]).toEqual([null, null])
      else {
        expect(fault.found).toMatch(refused)
        expect(migrated).toBeInstanceOf(MigrationError)
        expect((migrated as Error).message).toMatch(refused)
      }
    } finally {
      await client.close()
      await other.stop()
    }
  })
})
