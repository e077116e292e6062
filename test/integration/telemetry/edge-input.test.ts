/**
 * Hostile input at a real edge, beside good traffic: every case once, the same
 * 401 for everything unauthenticated, and a stream with the accepted events and nothing else.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import {
  compareAnswers,
  compareTimes,
  toUnauthenticated,
  toUnsigned,
} from '../../faults/edge-input/compare-refusals.ts'
import { checkStored, type HostileRig, startHostileRig } from '../../faults/edge-input/rig.ts'
import { neverRead, openIdle, sendSlowly } from '../../faults/edge-input/slow-senders.ts'
import {
  newTally,
  sendFollowed,
  sendPooled,
  sendSmuggling,
} from '../../faults/edge-input/stages.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { seed } from '../../support/process/seed.ts'

let rig: HostileRig

beforeAll(async () => {
  rig = await startHostileRig({ syncAlways: false })
  rig.traffic.start(100)
})

afterAll(() => rig?.stop())

describe('hostile input', () => {
  it('is refused as specified, each of twelve thousand kinds', async () => {
    const tally = newTally()
    await sendPooled(rig, tally)
    expect(tally.breaches).toEqual([])
    expect([...tally.sent.values()].reduce((sum, times) => sum + times)).toBeGreaterThan(12_000)
  })

  it('is never split into two requests, with any framing', async () => {
    const tally = newTally()
    await sendSmuggling(rig, tally)
    expect(tally.breaches).toEqual([])
  })

  it('after a good request does not affect it; no event is stored without a 200', async () => {
    const tally = newTally()
    await sendFollowed(rig, tally)
    expect(tally.breaches).toEqual([])
  })

  it('over 2,000 silent connections does not delay other clients', async () => {
    const idle = await openIdle(rig.port, 2_000)
    expect(idle.refused).toBe(0)
    const answers = await compareAnswers(rig.client, toUnsigned(rig.tenants))
    expect(answers).toHaveLength(1)
    idle.close()
  })

  it('that never ends is cut off, at any stage of a request', async () => {
    const { 'a refused body, byte by byte': refused, ...slow } = await sendSlowly(
      rig.port,
      rig.tenants.acme,
    )
    expect(refused).toBe(415)
    expect(Object.values(slow)).toEqual(Array(8).fill(408))
    const timeouts = { code: 'request_timeout' }
    const unreadable = 'di_http_unreadable_requests_total'
    expect(await readMetric(rig.edge.internalUrl, unreadable, timeouts)).toBeGreaterThan(3)
  })

  it('of a client that reads no answer is not read without end', async () => {
    // More than the buffers of both sides take.
    const bytesMax = 64 * 1024 * 1024
    expect(await neverRead(rig.port, bytesMax)).toBeLessThan(bytesMax)
  })
})

describe('unauthenticated requests', () => {
  it('get equal answers, byte for byte', async () => {
    expect(await compareAnswers(rig.client, toUnauthenticated(rig.tenants))).toHaveLength(1)
  })

  it('get their answers in equal times', async () => {
    const random = createRandom(seed, 'order').next
    const kinds = toUnauthenticated(rig.tenants)
    const options = { each: 500, bodyBytes: 60_000, random }
    const { worst } = await compareTimes(rig.port, kinds, options)
    // With 500 each the chance varies by 0.018: the margin is five times that.
    expect(Math.abs(worst.chance - 0.5), `seed ${seed}: ${JSON.stringify(worst)}`).toBeLessThan(0.1)
  })
})

describe('the stream', () => {
  it('has exactly the accepted events, and good traffic was accepted', async () => {
    const good = rig.note(await rig.traffic.stop())
    expect(good.statuses).toEqual({ 200: good.latencies.length })
    const { stored, lost, foreign } = await checkStored(rig.rig.nats, rig.accepted)
    expect(lost).toEqual([])
    expect(foreign).toEqual([])
    expect(stored).toBeGreaterThan(good.latencies.length)
  })
})
