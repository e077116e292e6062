/**
 * A stream of 4 MB and several times as much telemetry: the short form of `npm run faults --
 * small-stream`.
 */
import { expect, it } from 'vitest'
import { judgeSmallStream, runSmallStream } from '../../faults/small-stream/small-stream.ts'

it('ingest continues with a stream far smaller than the telemetry', async () => {
  const options = { seconds: 10, ratePerSecond: 200, streamBytes: 4 * 1024 ** 2 }
  const result = await runSmallStream(options)
  expect(judgeSmallStream(result, options)).toEqual([])
})
