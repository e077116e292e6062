// The number of ClickHouse engines of a stack stays that of its data.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { chooseShardPorts } from '../../../deploy/local/stack/ports/server-ports.ts'
import { readSettings } from '../../../deploy/local/stack/settings.ts'

let dataDir: string
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'shards-'))
})
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

const read = (...args: string[]) =>
  readSettings({ env: { DATA_DIR: dataDir }, args, projectDir: '/nowhere' })
const choose = (...args: string[]) => chooseShardPorts(read(...args), 4_711)

it('is an option of the command, and one engine without it', async () => {
  expect(read().shards).toBeNull()
  expect(read('--shards', '2').shards).toBe(2)
  expect(read('--shards=3').shards).toBe(3)
  for (const wrong of [['--shards'], ['--shards', '0'], ['--shards', '9'], ['--sharps', '2']]) {
    expect(() => read(...wrong)).toThrow(/--shards N, with N from 1 to 8/)
  }
  const env = { DATA_DIR: dataDir, CLICKHOUSE_URL: 'http://127.0.0.1:1' }
  const external = () => readSettings({ env, args: ['--shards', '2'], projectDir: '/nowhere' })
  expect(external).toThrow(/embedded engines/)
  expect(await choose()).toEqual([])
})

it('gives each engine ports of its own, the same at the next start', async () => {
  const first = await choose('--shards', '2')
  expect(first[0]!.http).toBe(4_711)
  expect(new Set(first.flatMap((ports) => Object.values(ports))).size).toBe(4)
  expect(await choose('--shards', '2')).toEqual(first)
})

it('is refused for a backup that is to be restored, which is of one engine', async () => {
  const restore = join(dataDir, 'clickhouse/backups/restore')
  mkdirSync(restore, { recursive: true })
  await expect(choose('--shards', '2')).rejects.toThrow(/--shards 1/)
  rmSync(restore, { recursive: true })
})

it('is refused when the data lie on another number of engines', async () => {
  mkdirSync(join(dataDir, 'clickhouse/metadata'), { recursive: true })
  mkdirSync(join(dataDir, 'clickhouse-2'))
  expect(await choose()).toHaveLength(2)
  await expect(choose('--shards', '1')).rejects.toThrow(/on 2 ClickHouse engines/)
  await expect(choose('--shards', '3')).rejects.toThrow(/--shards 2/)
})
