/**
 * Spans and their export to a collector: clients do not choose what is sampled, rates and memory
 * are bounded, and a collector that is slow, hangs or is down stops nothing.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { spansWaitingMax, tracesPerSecondMax } from '#shared/core/base/limits/tracing.ts'
import { type Env, readConfig } from '#shared/io/process/config.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { openTracing } from '#shared/io/tracing/open-tracing.ts'
import { type Tracing, tracingVariables } from '#shared/io/tracing/tracing.ts'
import { until } from '../../support/process/until.ts'
import { type Collector, startCollector } from '../../support/tracing/collector.ts'

const endpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT'
let collector: Collector

beforeAll(async () => {
  collector = await startCollector()
})

afterAll(() => {
  collector.close()
  delete process.env[endpoint]
})

/** Tracing as a process opens it. */
async function open(env: Env) {
  // The exporter reads its address from the environment of the process.
  process.env[endpoint] = env[endpoint] ?? ''
  const metrics = createMetrics('test')
  let stop = async () => {}
  const lifecycle = {
    onStop: (_name: string, step: () => Promise<void> | void) => {
      stop = async () => step()
    },
  }
  const log = createLog('test', 'silent')
  const config = readConfig(tracingVariables, env)
  const tracing = await openTracing(config, { service: 'test', lifecycle, log, metrics })
  const count = async (outcome: string): Promise<number> => {
    const found = await metrics.registry.getSingleMetric('di_trace_spans_total')!.get()
    return found.values.find(({ labels }) => labels.outcome === outcome)!.value
  }
  return { tracing: tracing as Tracing, stop: () => stop(), count }
}

const client = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const sampled = `00-${client.traceId}-${client.spanId}-01`
const start = { kind: 'server', attributes: {} } as const

it('is off without a collector, and loads nothing then', async () => {
  expect((await open({})).tracing).toBeNull()
})

it('lets no client choose what is sampled or write into another trace', async () => {
  const none = await open({ [endpoint]: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' })
  for (let n = 0; n < 1_000; n++) {
    expect(none.tracing.startTrace('forced', { ...start, link: sampled })).toBeNull()
  }
  await none.stop()

  const all = await open({ [endpoint]: collector.url, OTEL_TRACES_SAMPLER_ARG: '1' })
  const span = all.tracing.startTrace('linked', { ...start, link: sampled })!
  expect(span.traceparent).not.toContain(client.traceId)
  span.startChild('child', { ...start, kind: 'producer' }).end({ isFailed: true })
  span.end({ attributes: { 'di.tenant_id': 'acme' } })
  const hostile = [`${sampled}, ${sampled}`, 'x'.repeat(8_000), [sampled, sampled], undefined]
  for (const link of hostile) all.tracing.startTrace('unlinked', { ...start, link })!.end()
  await all.stop()
  const found = (name: string) => collector.spans.filter((one) => one.name === name)
  expect(found('forced')).toEqual([])
  expect(found('linked')).toMatchObject([
    { links: [client], attributes: { 'di.tenant_id': 'acme' } },
  ])
  expect(found('linked')[0]!.parentSpanId ?? '').toBe('')
  const { traceId, spanId: parentSpanId } = found('linked')[0]!
  expect(found('child')).toMatchObject([{ traceId, parentSpanId, isFailed: true }])
  expect(found('unlinked').map(({ links }) => links)).toEqual(hostile.map(() => []))
})

it('continues a sampled trace alone, and reads the headers and names of its settings', async () => {
  const { tracing, stop } = await open({
    [endpoint]: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b, x-other=c',
  })
  tracing.continueTrace('continued', sampled, start)!.end()
  expect(tracing.continueTrace('continued', sampled.replace(/1$/, '0'), start)).toBeNull()
  expect(tracing.continueTrace('continued', 'no traceparent', start)).toBeNull()
  await stop()
  expect(collector.spans.filter(({ name }) => name === 'continued')).toMatchObject([
    { service: 'test', traceId: client.traceId, parentSpanId: client.spanId },
  ])
  expect(collector.headers()).toMatchObject({ 'x-key': 'a b', 'x-other': 'c' })
})

it('bounds the traces of a second, whatever the ratio', async () => {
  const { tracing, stop } = await open({
    [endpoint]: collector.url,
    OTEL_TRACES_SAMPLER: 'always_on',
  })
  const begunMs = performance.now()
  let started = 0
  for (let n = 0; n < 5_000; n++) {
    const span =
      n % 2 ? tracing.startTrace('many', start) : tracing.continueTrace('many', sampled, start)
    if (span !== null) started++
  }
  const refilled = Math.ceil(((performance.now() - begunMs) / 1_000) * tracesPerSecondMax)
  expect(started).toBeGreaterThanOrEqual(tracesPerSecondMax)
  expect(started).toBeLessThanOrEqual(tracesPerSecondMax + refilled)
  await stop()
})

it('drops spans that a collector which hangs does not take, counts them, and stops in time', async () => {
  const hanging = await startCollector()
  hanging.hang()
  const { tracing, stop, count } = await open({
    [endpoint]: hanging.url,
    OTEL_TRACES_SAMPLER_ARG: '1',
  })
  const root = tracing.startTrace('root', start)!
  for (let n = 0; n < spansWaitingMax + 100; n++) root.startChild('child', start).end()
  expect(await count('dropped')).toBe(100)
  await stop()
  expect(await count('exported')).toBe(0)
  hanging.close()
})

it('counts the spans that a collector refuses as failed', async () => {
  const url = `${collector.url}/elsewhere`
  const { tracing, stop, count } = await open({ [endpoint]: url, OTEL_TRACES_SAMPLER_ARG: '1' })
  tracing.startTrace('lost', start)!.end()
  await stop()
  await until('the failure', async () => (await count('failed')) === 1)
})

it.each([
  [{ [endpoint]: 'collector:4317' }, endpoint],
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, 'OTEL_TRACES_SAMPLER'],
  [{ OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS'],
])('refuses %j and repeats no value', (env, name) => {
  expect(() => readConfig(tracingVariables, env as Env)).toThrow(name)
  if (name.endsWith('HEADERS')) {
    expect(() => readConfig(tracingVariables, env as Env)).not.toThrow('secret')
  }
})
