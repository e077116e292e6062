// Limits of an analyst's query: its permit lasts until the engine has finished, other queries
// continue meanwhile, and an answer is complete or an error.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMetrics } from '#shared/io/process/metrics.ts'
import type { AnalystProxy } from '../../../deploy/local/clickhouse/analyst-proxy.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: AnalystsRig
beforeAll(async () => {
  rig = await createAnalystsRig()
})
afterAll(() => rig?.close())

/** A query that for some seconds checks neither the clock nor a kill: one block of rows. */
const deaf = 'select sum(has(range(1000000), number + 2000000)) from numbers(1000)'
/** The number of running queries of analysts with such a text. */
const running = (like: string, seconds = 0) =>
  rig.asService(`select count() from system.processes where user = 'analyst'
    and query like '${like}' and query not like '%tokenizeQuery%'
    and elapsed >= ${seconds}`)

async function withProxy(
  own: Parameters<AnalystsRig['openProxy']>[0],
  use: (proxy: AnalystProxy) => Promise<void>,
): Promise<void> {
  const proxy = await rig.openProxy(own)
  try {
    await use(proxy)
  } finally {
    await proxy.close()
  }
}

describe('the permit of a query', () => {
  it('lasts until the engine has finished, even without its client; others continue', async () => {
    const limits = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 60_000 }
    await withProxy({ limits }, async (proxy) => {
      const leaving = new AbortController()
      const left = rig
        .runQuery({ query: deaf, signal: leaving.signal }, rig.acme, proxy)
        .catch(String)
      await until('it is in its block', async () => (await running('%has(range%', 0.3)) === '1')
      leaving.abort()
      await left
      const next = rig.runQuery({ query: "select 'next'" }, rig.acme, proxy)
      const other = await rig.runQuery({ query: "select 'other'" }, rig.globex, proxy)
      expect([other.status, other.text]).toEqual([200, 'other\n'])
      expect(await running('%has(range%')).toBe('1')
      expect((await next).text).toBe('next\n')
      expect(await running('%has(range%')).toBe('0')
    })
  })

  it('ends with an error at the time limit, even if the query ignores the clock', async () => {
    const limits = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 60_000 }
    await withProxy({ limits, queryMaxMs: 500 }, async (proxy) => {
      const reply = await rig.runQuery({ query: deaf }, rig.acme, proxy)
      expect([reply.status, reply.text]).toEqual([408, expect.stringContaining('TIMEOUT_EXCEEDED')])
      expect(await running('%has(range%')).toBe('1')
      expect((await rig.runQuery({ query: 'select 1' }, rig.globex, proxy)).text).toBe('1\n')
      expect(await running('%has(range%')).toBe('1')
      await until('the engine is done', async () => (await running('%has(range%')) === '0')
    })
  })

  it('ends at the engine’s own limit where the query checks the clock', async () => {
    const query = 'select sum(sipHash64(number)) from numbers(1000000000)'
    const reply = await rig.runQuery({ query, params: { max_execution_time: '1' } })
    expect([reply.status, reply.text]).toEqual([408, expect.stringContaining('TIMEOUT_EXCEEDED')])
  })

  it('is not affected by the engine’s limit, which counts all tenants as one user', async () => {
    const slow = { query: 'select sum(sipHash64(number)) from numbers(20000000) format Null' }
    const limits = { perTenant: 8, total: 8, queuePerTenant: 0, waitMs: 60_000 }
    await withProxy({ limits }, async (proxy) => {
      const started = Array.from({ length: 8 }, () => rig.runQuery(slow, rig.acme, proxy))
      const replies = await Promise.all(started)
      expect(replies.map(({ status, text }) => [status, text])).toEqual(Array(8).fill([200, '']))
    })
  })

  it('is available to each tenant, however many queries another one has', async () => {
    const slow = { query: 'select sum(sipHash64(number)) from numbers(20000000) format Null' }
    const limits = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 60_000 }
    await withProxy({ limits }, async (proxy) => {
      let acmeDone = 0
      const many = Array.from({ length: 10 }, () =>
        rig.runQuery(slow, rig.acme, proxy).then(() => acmeDone++),
      )
      await until('the first runs', async () => (await running('%sipHash64%')) !== '0')
      expect((await rig.runQuery({ query: 'select 1' }, rig.globex, proxy)).text).toBe('1\n')
      expect(acmeDone).toBeLessThanOrEqual(2)
      await Promise.all(many)
    })
  })
})

describe('an answer', () => {
  const early = [
    {},
    { wait_end_of_query: '0', buffer_size: '0' },
    { send_progress_in_http_headers: '1', http_headers_progress_interval_ms: '100' },
    { enable_http_compression: '1' },
    { compress: '1' },
  ]
  it.each(early)('is complete or an error with its status (%o)', async (params) => {
    const headers = { 'accept-encoding': 'gzip' }
    for (const query of [
      'select number from numbers(1000001)',
      'select number, throwIf(number = 900000) from numbers(1000000)',
      "select materialize(repeat('x', 1000)) from numbers(300000)",
    ]) {
      const reply = await rig.runQuery({ query, params, headers })
      expect([query, reply.status]).toEqual([query, 500])
    }
    const { status, text } = await rig.runQuery({ query: 'select number from numbers(1000000)' })
    expect([status, text.length]).toEqual([200, 6_888_890])
  })

  it('is cut off when its client reads too slowly, which frees the permit', async () => {
    const limits = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 60_000 }
    await withProxy({ limits, sendMaxMs: 500 }, async (proxy) => {
      const stuck = connect(Number(new URL(proxy.url).port), '127.0.0.1')
      const basic = Buffer.from(`${rig.acme.user}:${rig.acme.password}`).toString('base64')
      const query = encodeURIComponent('select number from numbers(1000000)')
      stuck.write(
        `GET /?query=${query} HTTP/1.1\r\nhost: a\r\nauthorization: Basic ${basic}\r\n\r\n`,
      )
      await once(stuck, 'readable')
      expect((await rig.runQuery({ query: 'select 1' }, rig.acme, proxy)).text).toBe('1\n')
      stuck.destroy()
    })
  })

  it('beyond the memory bound is an error, even when the engine counts less', async () => {
    // A column of one value counts as one value.
    const reply = await rig.runQuery({ query: "select repeat('x', 1000) from numbers(20000)" })
    expect([reply.status, reply.text]).toEqual([500, expect.stringContaining('TOO_MANY_ROWS')])
    expect((await rig.runQuery({ query: 'select 1' })).text).toBe('1\n')
  })
})

describe('the metric of queries without a result', () => {
  const readCounts = async (metrics: ReturnType<typeof createMetrics>) => {
    const metric = metrics.registry.getSingleMetric('di_analyst_queries_failed_total')!
    const counted = (await metric.get()).values.filter(({ value }) => value > 0)
    return Object.fromEntries(counted.map(({ labels, value }) => [labels.reason, value]))
  }

  it('counts rejected queries by reason, and no answered query', async () => {
    const metrics = createMetrics('analysts')
    await withProxy({ metrics }, async (proxy) => {
      const runQuery = (query: string, more: object = {}) =>
        rig.runQuery({ query, ...more }, rig.acme, proxy)
      expect((await runQuery('select 1')).status).toBe(200)
      await runQuery('select 1', { password: 'wrong' })
      await runQuery('select 1', { method: 'PUT' })
      await runQuery('select 1', { params: { max_threads: '8' } })
      await runQuery("select * from file('/etc/passwd')")
      await runQuery('select no_such_column from events')
      await runQuery("select repeat('x', 1000000) from numbers(100)")
    })
    expect(await readCounts(metrics)).toEqual({
      authentication: 1,
      request: 2,
      statement: 1,
      engine_error: 1,
      size: 1,
    })
  })

  it('counts queries that take too long or exceed the limit of the tenant', async () => {
    const metrics = createMetrics('analysts')
    const limits = { perTenant: 1, total: 1, queuePerTenant: 0, waitMs: 60_000 }
    await withProxy({ metrics, limits, queryMaxMs: 1_000 }, async (proxy) => {
      const slow = rig.runQuery({ query: deaf }, rig.acme, proxy)
      await until('it runs', async () => (await running('%has(range%', 0.3)) === '1')
      expect((await rig.runQuery({ query: 'select 1' }, rig.acme, proxy)).status).toBe(503)
      expect((await slow).status).toBe(408)
      await until('the engine is done', async () => (await running('%has(range%')) === '0')
    })
    expect(await readCounts(metrics)).toEqual({ concurrency: 1, time: 1 })
  })
})
