import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shardOf, toDistributedTable } from '#shared/core/base/shards.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { seed } from '../../support/process/seed.ts'

describe('the shard of a key', () => {
  it('is one of the shards, follows from the key alone, and is as ClickHouse computes it', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 64 }), (id, shards) => {
        const keyHash = toKeyHash('device', id)
        const shard = shardOf(keyHash, shards)
        expect(shardOf(toKeyHash('device', id), shards)).toBe(shard)
        // Distributed takes the remainder of the unsigned number.
        expect(BigInt(shard)).toBe(BigInt(keyHash) % BigInt(shards))
        expect(shard).toBeGreaterThanOrEqual(0)
        expect(shard).toBeLessThan(shards)
      }),
      { seed },
    )
  })

  it('spreads devices evenly, also those whose ids have a common form', () => {
    for (const shards of [2, 3, 8]) {
      const counts = Array.from({ length: shards }, () => 0)
      for (let n = 0; n < 8_000; n++) counts[shardOf(toKeyHash('device', `and-${n}`), shards)]!++
      const mean = 8_000 / shards
      for (const count of counts) expect(Math.abs(count - mean)).toBeLessThan(mean * 0.15)
    }
  })
})

describe('the table of all shards', () => {
  it('has the key of its table, and the first shard where a table has none', () => {
    const names = { all: 'di_all', database: 'di' }
    const keyOf = (table: string) =>
      /'di', '\w+', (.*)\)$/.exec(toDistributedTable({ ...names, table }))?.[1]
    expect(keyOf('sessions')).toBe(keyOf('telemetry'))
    expect(keyOf('telemetry')).toContain("concat('device ', device_id)")
    expect(keyOf('activity')).toBe('key_hash')
    expect(keyOf('replication_rounds')).toBe('0')
  })
})
