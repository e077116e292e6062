// Answers with many rows: the concurrency limits, and the pieces in which they are sent.

import { EventEmitter } from 'node:events'
import type { FastifyReply } from 'fastify'
import { beforeEach, describe, expect, it } from 'vitest'
import { largeResponses } from '#shared/core/base/limits/rest-api.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import { createOutageLog, toProblem } from '#shared/io/http/http-server.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createLargeResponses } from '../../../services/api/http/large-responses.ts'
import { streamJson } from '../../../services/api/http/stream-json.ts'
import { until } from '../../support/process/until.ts'

type Raw = EventEmitter & { destroyed: boolean; destroy: () => void }

function createReply(): { reply: FastifyReply; raw: Raw } {
  const raw = Object.assign(new EventEmitter(), {
    destroyed: false,
    destroy: () => {
      raw.destroyed = true
      raw.emit('close')
    },
  })
  return { raw, reply: { raw } as unknown as FastifyReply }
}

describe('large answers', () => {
  let metrics: ReturnType<typeof createMetrics>
  let begun: { tenantId: string; raw: Raw }[]
  let begin: (tenantId: string) => Promise<void>

  const use = (longestMs?: number) => {
    metrics = createMetrics('api')
    begun = []
    const beginLargeResponse = createLargeResponses(metrics, longestMs)
    begin = async (tenantId) => {
      const { reply, raw } = createReply()
      await beginLargeResponse(tenantId, reply)
      begun.push({ tenantId, raw })
    }
  }
  beforeEach(() => use())

  const countOf = (tenantId: string) => begun.filter((one) => one.tenantId === tenantId).length

  it('are limited per tenant and in total until they are sent', async () => {
    for (const tenantId of ['a', 'b', 'c'])
      for (let n = 0; n < 16; n++) begin(tenantId).catch(() => undefined)
    await until('all places are taken', () => begun.length === largeResponses.total)
    await new Promise((resolve) => setImmediate(resolve))
    expect([countOf('a'), countOf('b'), countOf('c')]).toEqual([2, 2, 0])
    begun.splice(0, 1)[0]!.raw.emit('close')
    await until('all places are taken', () => begun.length === largeResponses.total)
    expect(countOf('a')).toBe(2)
  })

  it('are cut off when a client reads them too slowly, which frees their place', async () => {
    use(20)
    await Promise.all([begin('a'), begin('a')])
    const first = begun.map(({ raw }) => raw)
    await Promise.all([begin('a'), begin('a')])
    expect(first.map(({ destroyed }) => destroyed)).toEqual([true, true])
    expect(await metrics.registry.metrics()).toMatch(
      /di_api_large_answers_total\{[^}]*outcome="cut_off"[^}]*\} [2-4]\s/,
    )
  })

  it('are refused when too many wait', async () => {
    const all = Array.from(
      { length: largeResponses.perTenant + largeResponses.queuePerTenant + 5 },
      () =>
        begin('a').then(
          () => 'begun',
          (error: unknown) => (error as { code: string }).code,
        ),
    )
    const refused = await Promise.all(all.slice(-5))
    expect(refused).toEqual(refused.map(() => 'unavailable'))
  })
})

it('a refusal at the limit is not logged as a failure each time', () => {
  const logged: string[] = []
  const log = { error: (_: unknown, text: string) => logged.push(text) } as unknown as Log
  toProblem(unavailable('No place.'), log)
  expect(logged).toEqual([])
  toProblem(unavailable('No database.', new Error('away')), log)
  expect(logged).toEqual(['No database.'])
})

it('an outage is logged once for many requests, and each kind of it', () => {
  const logged: string[] = []
  const log = { error: (_: unknown, text: string) => logged.push(text) } as unknown as Log
  const note = createOutageLog(log)
  for (let n = 0; n < 1_000; n++) {
    toProblem(unavailable('No database.', new Error('away')), log, note)
    toProblem(unavailable('No engine.', new Error('away')), log, note)
  }
  expect(logged).toEqual(['No database.', 'No engine.'])
  // A defect is logged each time.
  for (const text of ['one', 'two']) toProblem(new Error(text), log, note)
  expect(logged.slice(2)).toEqual(['a request failed', 'a request failed'])
})

describe('a long list as JSON', () => {
  it('equals the output of JSON.stringify, in pieces with yields between them', async () => {
    const items = Array.from({ length: 10_000 }, (_, n) => ({ id: `s-${n}`, at: n, text: '"\n é' }))
    const lists = {
      none: { items: [], toItem: (item: unknown) => item },
      ids: { items, toItem: (item: { id: string }) => item.id },
      items: { items, toItem: (item: unknown) => item },
    }
    let yields = 0
    let counting = true
    const count = () => {
      yields++
      if (counting) setImmediate(count)
    }
    setImmediate(count)
    const chunks: Buffer[] = []
    for await (const chunk of streamJson({ first: 1 }, lists)) chunks.push(chunk as Buffer)
    counting = false
    const text = Buffer.concat(chunks).toString('utf8')
    const ids = items.map(({ id }) => id)
    expect(text).toBe(JSON.stringify({ first: 1, none: [], ids, items }))
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(64 * 1024)
    expect(yields).toBeGreaterThan(90)
  })
})
