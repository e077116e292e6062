/**
 * Rotation as operators and clients see it: a console process, three edge processes behind proxies
 * that can be cut, and clients that sign with old and new secrets continuously. `npm run faults --
 * rotations [--rotations 300] [--pause-ms 12]` takes random rotations and faults.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { drillLimitMs, drillOptions, isDrill } from '../../faults/drill-options.ts'
import {
  planAtRandom,
  rotateUnderLoad,
  type Step,
  type UnderLoad,
} from '../../faults/rotations/rotate-under-load.ts'
import { percentile } from '../../support/process/percentile.ts'
import { seed } from '../../support/process/seed.ts'

const hmac = { hmac: true }
const all = { hmac: true, webhook: true, api_key: true }
const fault = (
  edge: number,
  kind: 'cut' | 'pause' | 'kill' | 'clock',
  leadMs: number,
  lastsMs: number | null = null,
) => ({ fault: { edge, kind, leadMs, lastsMs } })
const step = (request: Step['request'], more: Partial<Step> = {}): Step => ({
  request,
  idleMs: 60,
  quiet: true,
  ...more,
})

/**
 * Every fault once or twice, at another edge each time, between rotations with all edges healthy.
 */
const shortPlan: Step[] = [
  step(hmac),
  step(hmac, fault(0, 'cut', 50)),
  step(hmac, fault(0, 'clock', 0)),
  step(all),
  step(hmac, fault(1, 'pause', 50)),
  step(hmac),
  step({ webhook: true }),
  step(hmac, fault(2, 'kill', 50)),
  // Events that this edge accepts meanwhile, while its lease lasts, are stored when it reconnects.
  step(hmac, fault(1, 'cut', 50, 800)),
  step(hmac, fault(2, 'cut', -5)),
  step({ api_key: true }),
  step(hmac, { quiet: false }),
]

const options = drillOptions(
  { rotations: shortPlan.length, 'pause-ms': 15 },
  { rotations: 300, 'pause-ms': 12 },
)
const plan = isDrill ? planAtRandom(options.rotations, seed) : shortPlan

let result: UnderLoad

beforeAll(async () => {
  result = await rotateUnderLoad({ plan, seed, clientPauseMs: options['pause-ms'] })
}, drillLimitMs)

describe(`${plan.length} rotations under load, edges paused, killed and cut off (seed ${seed})`, () => {
  it('accept no request with the old secret that began after the rotation had returned', () => {
    expect(result.findings.oldAccepted).toEqual([])
    expect(result.findings.oldJudged).toBeGreaterThan(50)
  })

  it('reject no later request with the new secret, except at an edge without a lease', () => {
    expect(result.findings.newRefused).toEqual([])
    expect(result.findings.newJudged).toBeGreaterThan(50)
    expect(result.findings.unexpected).toEqual([])
    expect(result.findings.statuses['503']).toBeGreaterThan(0)
  })

  it('never accept an old secret once a newer one has been accepted anywhere', () => {
    expect(result.findings.bothAccepted).toEqual([])
  })

  it('lose no accepted event, with any clock of its edge', () => {
    expect(result.lost).toBe(0)
    expect(Object.keys(result.clocks).sort()).toEqual(['+1 h', '-1 h', 'right'])
  })

  it('take a moment with every edge healthy, and a lease otherwise', () => {
    const tookMs = (well: boolean) =>
      result.rotations.filter(({ edges }) => (edges === 'well') === well).map((run) => run.tookMs)
    expect(percentile(tookMs(true), 0.5)).toBeLessThan(percentile(tookMs(false), 0.5))
    expect(Math.max(...tookMs(false))).toBeGreaterThan(1_000)
  })
})
