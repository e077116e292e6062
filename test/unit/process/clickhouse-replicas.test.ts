// Which replica of a shard gets a request. Real engines fail over in
// test/integration/clickhouse/shards.test.ts.
import { Readable } from 'node:stream'
import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { type ClickhouseRequests, joinReplicas } from '#shared/io/clickhouse/replicas.ts'

const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
const timedOut = new Error('Timeout error.')
const answered = new ClickHouseError({ message: 'no', code: '242', type: 'TABLE_IS_READ_ONLY' })

/** Two replicas that fail as told; the requests that each got. */
function rig() {
  const asked: string[] = []
  const faults: Record<string, Error | undefined> = {}
  const replica = (name: string): ClickhouseRequests => {
    const work = async () => {
      asked.push(name)
      await Promise.resolve()
      if (faults[name] !== undefined) throw faults[name]
      return name as never
    }
    const close = async () => void asked.push(`${name} closed`)
    return { query: work, insert: work, command: work, exec: work, close }
  }
  const node = joinReplicas([replica('a'), replica('b')])
  const ask = () => node.command({ query: 'select 1' })
  return { node, ask, asked, faults }
}

it('is the first one, and the next from when a connection fails until that one fails', async () => {
  const { ask, asked, faults } = rig()
  await ask()
  faults.a = refused
  expect(await ask()).toBe('b')
  faults.a = undefined
  await ask()
  faults.b = refused
  expect(await ask()).toBe('a')
  expect(asked).toEqual(['a', 'a', 'b', 'b', 'b', 'a'])
})

it('fails once none answers, and tries the next one the next time', async () => {
  const { ask, asked, faults } = rig()
  faults.a = refused
  faults.b = refused
  await expect(ask()).rejects.toBe(refused)
  expect(asked).toEqual(['a', 'b'])
})

it('turns once when many requests fail at the same time', async () => {
  const { ask, faults } = rig()
  faults.a = refused
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(['b', 'b', 'b'])
  expect(await ask()).toBe('b')
})

it('repeats no request that took its time, and turns away from that replica', async () => {
  const { ask, asked, faults } = rig()
  faults.a = timedOut
  await expect(ask()).rejects.toBe(timedOut)
  expect(await ask()).toBe('b')
  expect(asked).toEqual(['a', 'b'])
})

it('repeats no rows that were streamed', async () => {
  const { node, asked, faults } = rig()
  faults.a = refused
  const insert = () => node.exec({ query: 'insert into t', values: Readable.from(['1']) })
  await expect(insert()).rejects.toBe(refused)
  expect(await insert()).toBe('b')
  expect(asked).toEqual(['a', 'b'])
})

it('stays with a replica that answers with an error', async () => {
  const { ask, asked, faults } = rig()
  faults.a = answered
  await expect(ask()).rejects.toBe(answered)
  await expect(ask()).rejects.toBe(answered)
  expect(asked).toEqual(['a', 'a'])
})

it('closes all', async () => {
  const { node, asked } = rig()
  await node.close()
  expect(asked).toEqual(['a closed', 'b closed'])
})
