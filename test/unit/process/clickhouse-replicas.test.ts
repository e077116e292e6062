// Which replica of a shard gets a request. Real engines fail over in
// test/long/clickhouse/shards.test.ts.
import { Readable } from 'node:stream'
import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { type ClickhouseRequests, joinReplicas } from '#shared/io/clickhouse/replicas.ts'

const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
const timedOut = new Error('Timeout error.')
const answered = new ClickHouseError({ message: 'no', code: '242', type: 'TABLE_IS_READ_ONLY' })

/** Two replicas that fail when they are set to; the requests that each got. */
function rig() {
  const sent: string[] = []
  const faults: Record<string, Error | undefined> = {}
  const replica = (name: string): ClickhouseRequests => {
    const work = async () => {
      sent.push(name)
      await Promise.resolve()
      if (faults[name] !== undefined) throw faults[name]
      return name as never
    }
    const close = async () => void sent.push(`${name} closed`)
    return { query: work, insert: work, command: work, exec: work, close }
  }
  const node = joinReplicas([replica('a'), replica('b')])
  const send = () => node.command({ query: 'select 1' })
  return { node, send, sent, faults }
}

it('is the first one, and the next from when a connection fails until that one fails', async () => {
  const { send, sent, faults } = rig()
  await send()
  faults.a = refused
  expect(await send()).toBe('b')
  faults.a = undefined
  await send()
  faults.b = refused
  expect(await send()).toBe('a')
  expect(sent).toEqual(['a', 'a', 'b', 'b', 'b', 'a'])
})

it('fails once none answers, and tries the next one the next time', async () => {
  const { send, sent, faults } = rig()
  faults.a = refused
  faults.b = refused
  await expect(send()).rejects.toBe(refused)
  expect(sent).toEqual(['a', 'b'])
})

it('turns once when many requests fail at the same time', async () => {
  const { send, faults } = rig()
  faults.a = refused
  expect(await Promise.all([send(), send(), send()])).toEqual(['b', 'b', 'b'])
  expect(await send()).toBe('b')
})

it('repeats no request that took its time, and turns away from that replica', async () => {
  const { send, sent, faults } = rig()
  faults.a = timedOut
  await expect(send()).rejects.toBe(timedOut)
  expect(await send()).toBe('b')
  expect(sent).toEqual(['a', 'b'])
})

it('repeats no rows that were streamed', async () => {
  const { node, sent, faults } = rig()
  faults.a = refused
  const insert = () => node.exec({ query: 'insert into t', values: Readable.from(['1']) })
  await expect(insert()).rejects.toBe(refused)
  expect(await insert()).toBe('b')
  expect(sent).toEqual(['a', 'b'])
})

it('stays with a replica that answers with an error', async () => {
  const { send, sent, faults } = rig()
  faults.a = answered
  await expect(send()).rejects.toBe(answered)
  await expect(send()).rejects.toBe(answered)
  expect(sent).toEqual(['a', 'a'])
})

it('closes all', async () => {
  const { node, sent } = rig()
  await node.close()
  expect(sent).toEqual(['a closed', 'b closed'])
})
