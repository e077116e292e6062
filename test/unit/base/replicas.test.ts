import { describe, expect, it } from 'vitest'
import { runsOnceAShard, toReplicatedTable, toTableOfReplica } from '#shared/core/base/replicas.ts'

const place = { database: 'di', shard: 2, replica: 'b:8123' }

describe('a statement on a replica', () => {
  it('has the engine that copies rows, under the path of its shard and table', () => {
    const create = (engine: string) =>
      toReplicatedTable(
        `-- Rows.\ncreate table if not exists t (a Int8)\n${engine}\norder by a`,
        place,
      )
    expect(create('engine = MergeTree')).toBe(
      '-- Rows.\ncreate table if not exists t (a Int8)\n' +
        "engine = ReplicatedMergeTree('/clickhouse/tables/di/2/t', 'b:8123')\norder by a",
    )
    expect(create('engine = ReplacingMergeTree(round, removed)')).toContain(
      "ReplicatedReplacingMergeTree('/clickhouse/tables/di/2/t', 'b:8123', round, removed)\n",
    )
  })

  it('quotes names', () => {
    const odd = { ...place, database: "it's", replica: 'b\\:1' }
    expect(
      toReplicatedTable('create table if not exists t (a Int8)\nengine = MergeTree', odd),
    ).toContain("('/clickhouse/tables/it\\'s/2/t', 'b\\\\:1')")
  })

  it('is unchanged without a table, and refused without an engine', () => {
    const view = 'create materialized view if not exists v to t as\nselect 1'
    expect(toReplicatedTable(view, place)).toBe(view)
    const other = 'create table if not exists t (a Int8)\nengine = Memory'
    expect(() => toReplicatedTable(other, place)).toThrow(/engine of t was not found/)
  })

  it('runs once a shard when it writes or alters a table', () => {
    expect(runsOnceAShard('-- Backfill.\ninsert into t\nselect 1')).toBe(true)
    expect(runsOnceAShard('alter table t\n  add column if not exists a Int8')).toBe(true)
    expect(runsOnceAShard('alter table v modify query\nselect 1')).toBe(false)
    expect(runsOnceAShard('create or replace view v as\nselect 1')).toBe(false)
  })
})

describe('the table of another replica', () => {
  const created = (engine: string) =>
    `CREATE TABLE di.t (\`a\` Int8 COMMENT 'ENGINE = ') ENGINE = ${engine} ORDER BY a`

  it('is as the first one is now, under its own name', () => {
    const path = "'/clickhouse/tables/di/2/t'"
    const engine = (replica: string) => `ReplicatedReplacingMergeTree(${path}, '${replica}', a)`
    expect(toTableOfReplica(created(engine('a:8123')), 'b:8123')).toBe(
      created(engine('b:8123')).replace('CREATE TABLE', 'CREATE TABLE IF NOT EXISTS'),
    )
  })

  it('is refused where the first one copies no rows', () => {
    expect(() => toTableOfReplica(created('MergeTree'), 'b:8123')).toThrow(/no replicated|not a/)
  })
})
