// Values of ClickHouse's native protocol, however a stream cuts them.
import { afterEach, expect, it, vi } from 'vitest'
import {
  createNativeReader,
  StreamEndedError,
  toText,
  toVarint,
} from '../../../deploy/local/clickhouse/native/native-reader.ts'

afterEach(() => vi.restoreAllMocks())

async function* cut(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

it('reads values from chunks of any size', async () => {
  const sent = Buffer.concat([toVarint(300), toText('text'), Buffer.of(7), toVarint(2 ** 40)])
  for (const size of [1, 2, 3, 100]) {
    const from = createNativeReader(cut(sent, size))
    const read = [await from.varint(), await from.text(4), await from.uint8(), await from.varint()]
    expect(read).toEqual([300, 'text', 7, 2 ** 40])
    await expect(from.uint8()).rejects.toThrow(StreamEndedError)
  }
})

it('joins a long text once, in however many chunks it comes', async () => {
  const sent = toText('x'.repeat(100_000))
  const concat = vi.spyOn(Buffer, 'concat')
  const from = createNativeReader(cut(sent, 1))
  expect((await from.text(100_000)).length).toBe(100_000)
  const joined = concat.mock.results.reduce((sum, { value }) => sum + value.length, 0)
  expect(joined).toBeLessThan(2 * sent.length)
})
