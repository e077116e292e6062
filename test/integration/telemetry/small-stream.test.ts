/**
 * A stream of 4 MB through which several times as much goes: the short form of
 * `npm run faults -- small-stream`.
 */
import { expect, it } from 'vitest'
import { judgeSmallStream, runSmallStream } from '../../faults/small-stream/small-stream.ts'

it('intake goes on through a stream far smaller than what comes', async () => {
  const options = { seconds: 20, ratePerSecond: 400, streamBytes: 4 * 1024 ** 2 }
  const result = await runSmallStream(options)
  expect(judgeSmallStream(result, options)).toEqual([])
})
