/**
 * Counters in alert rules show 0 before their first event: Prometheus sees no increase where a
 * series begins.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createEdgeKeys, toEdgeKeyTexts } from '#shared/io/keys/edge-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { openTenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import { createTenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { createRemovals } from '../../../services/console/jobs/removals.ts'
import { createIngestObserver } from '../../../services/ingest/metrics.ts'
import { createScorerObserver } from '../../../services/scorer/metrics.ts'
import { createStreamOffsetsReader } from '../../../services/scorer/store/read-stream-offsets.ts'

type Series = { name: string; labels: Record<string, string>; value: number }
type Matcher = { label: string; operator: string; value: string }

/** Its tenants are known with their first event. The rule is a rate over minutes instead. */
const ofTenants = 'di_ingest_limited_total'
const selectors = readSelectors()
const fromStart = selectors.filter(({ name }) => name !== ofTenants)
const series = await readSeriesAtStart()

it('the rules watch counters', () => {
  expect(fromStart.length).toBeGreaterThan(7)
  expect(selectors.length).toBe(fromStart.length + 1)
})

it.each(fromStart)('$selector begins at 0', ({ name, matchers, by }) => {
  const found = series.filter(
    (one) => one.name === name && matchers.every((matcher) => fits(one.labels, matcher)),
  )
  expect(found).not.toEqual([])
  for (const { labels, value } of found) {
    expect(value).toBe(0)
    expect(Object.keys(labels)).toEqual(expect.arrayContaining(by))
  }
})

/** What the rules count, with the labels that they group by. */
function readSelectors() {
  const file = new URL('../../../deploy/prometheus/alerts.yaml', import.meta.url)
  const { groups } = parse(readFileSync(file, 'utf8')) as {
    groups: { rules: { expr: string }[] }[]
  }
  return groups.flatMap(({ rules }) =>
    rules.flatMap(({ expr }) => {
      const by = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(/, */) ?? []
      return [...expr.matchAll(/\b(?:increase|i?rate)\((\w+)(?:\{([^}]*)\})?\[/g)].map(
        ([, name, braces]) => ({
          selector: `${name}{${braces ?? ''}}`,
          name: name!,
          by,
          matchers: [...(braces ?? '').matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
            ([, label, operator, value]): Matcher => ({
              label: label!,
              operator: operator!,
              value: value!,
            }),
          ),
        }),
      )
    }),
  )
}

function fits(labels: Record<string, string>, { label, operator, value }: Matcher): boolean {
  const own = labels[label] ?? ''
  const isFound = operator.endsWith('~') ? new RegExp(`^(?:${value})$`).test(own) : own === value
  return operator.startsWith('!') ? !isFound : isFound
}

/** What edges, scorers and consoles show before anything happens; no store answers. */
async function readSeriesAtStart(): Promise<Series[]> {
  const metrics = createMetrics('any', { isThread: true })
  const nowMs = () => 0
  const shared = { log: createLog('test', 'silent'), metrics, nowMs, wallMs: nowMs }
  const masterKey = randomBytes(32).toString('base64')
  const sealer = createSealer([masterKey])
  const keys = createEdgeKeys(toEdgeKeyTexts([masterKey]))
  const stream = toTelemetryStream(1)
  const nats = {
    connection: { jetstream: () => ({}), status: async function* () {} },
    connected: () => false,
    telemetryStreams: [stream],
  } as unknown as Nats
  const postgres = {} as Postgres
  const clickhouse = {} as Clickhouse
  const findNats = () => null
  const leases = { renewals: postgres, work: postgres }

  const backlog = {
    waiting: () => ({ events: 0, bytes: 0 }),
    queued: () => ({ requests: 0, bytes: 0 }),
    incompleteBytes: () => 0,
    delayedRefusals: () => 0,
  }
  const shares = { level: () => 0 }
  createIngestObserver(metrics, { backlog, shares, streams: [stream], nowMs })
  const directory = openTenantDirectory({ ...shared, nats, keys, edgeId: 'edge' })
  createScorerObserver(metrics, nowMs)
  createStreamOffsetsReader({ ...shared, nats, stream, clickhouse, postgres })
  createTenantProjection({ ...shared, findNats, sealer, postgres })
  createRemovals({ ...shared, findNats, sealer, postgres, clickhouse, leases })

  const found = await metrics.registry.getMetricsAsJSON()
  await directory.close()
  return found.flatMap(({ name, values }) =>
    values.map(({ labels, value }) => ({ name, labels: labels as Series['labels'], value })),
  )
}
