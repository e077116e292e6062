/** Percentiles of risk scores: one reading for each tenant and hour, and none that fails a reader. */
import { describe, expect, it } from 'vitest'
import { hourMs } from '#shared/core/base/instants.ts'
import { percentileRetryMs } from '#shared/core/base/limits/outcomes.ts'
import { noScores } from '#shared/core/outcomes/score-distribution.ts'
import { createQueryLimiter } from '#shared/io/http/limit-queries.ts'
import { createRiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

const beginMs = 1_000 * hourMs + 1

function createCase(read: () => Promise<void> = async () => undefined) {
  const clock = { ms: beginMs }
  const asked: { tenantId: string; sinceMs: number; untilMs: number }[] = []
  const { find } = createRiskPercentiles({
    // Four sessions of each score.
    countScores: async (range) => {
      asked.push(range)
      await read()
      return { ...noScores(), unlabelled: new Array<number>(101).fill(4) }
    },
    limited: createQueryLimiter(createMetrics('percentiles'), 'rejected_total'),
    nowMs: () => clock.ms,
  })
  return { clock, asked, find }
}

describe('a percentile', () => {
  it('is of one distribution for each tenant and hour, of whole hours', async () => {
    const { clock, asked, find } = createCase()
    const all = Array.from({ length: 20 }, () => find({ tenantId: 'acme', score: 50 }))
    expect(new Set((await Promise.all(all)).map((one) => one.risk_percentile))).toEqual(
      new Set([49.5]),
    )
    await find({ tenantId: 'other', score: 1 })
    clock.ms += hourMs - 2
    await find({ tenantId: 'acme', score: 50 })
    expect(asked.map(({ tenantId, untilMs }) => [tenantId, untilMs])).toEqual([
      ['acme', 1_000 * hourMs],
      ['other', 1_000 * hourMs],
    ])
    clock.ms += 2
    await find({ tenantId: 'acme', score: 50 })
    expect(asked.at(-1)).toMatchObject({ tenantId: 'acme', untilMs: 1_001 * hourMs })
  })

  it('is left out while nothing can be read, and asked for again a minute later', async () => {
    let isDown = true
    const { clock, asked, find } = createCase(async () => {
      if (isDown) throw new Error('ClickHouse is down')
    })
    const question = { tenantId: 'acme', score: 50 }
    expect(await find(question)).toEqual({})
    expect(await find(question)).toEqual({})
    expect(asked.length).toBe(1)
    isDown = false
    clock.ms += percentileRetryMs
    expect(await find(question)).toEqual({ risk_percentile: 49.5 })
    // An hour older it still answers; two hours later it is not of the last hour any more.
    isDown = true
    clock.ms = beginMs + hourMs
    expect(await find(question)).toEqual({ risk_percentile: 49.5 })
    clock.ms = beginMs + 2 * hourMs
    expect(await find(question)).toEqual({})
  })

  it('is left out when its reading hangs', async () => {
    const { find } = createCase(() => new Promise(() => undefined))
    expect(await find({ tenantId: 'acme', score: 50 })).toEqual({})
  })
})
