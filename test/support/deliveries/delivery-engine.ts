// A delivery engine for tests: the production engine on a real database, with a clock that the test
// moves, limits small enough to reach, and a sweep every few milliseconds.
import { randomUUID } from 'node:crypto'
import {
  createOutbound,
  type OutboundOptions,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import { createWebhookOpener, toDerivedKey } from '#shared/io/keys/process-keys.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type Engine, type EngineSettings, startEngine } from '../../../services/delivery/engine.ts'
import { atTime } from '../servers/database-clock.ts'
import { testMasterKey } from './delivery-fixtures.ts'

export type Clock = { nowMs: () => number; set: (ms: number) => void }

/**
 * A clock that stands still until it is set: the wall clock, the monotonic clock and the database's
 * clock.
 */
export function createClock(startMs: number): Clock {
  let now = startMs
  return {
    nowMs: () => now,
    set: (ms) => {
      now = ms
    },
  }
}

export type TestEngine = Engine & {
  /** Sweeps that have ended so far. */
  sweeps: () => Promise<number>
  /** The value of a counter with these labels. */
  count: (name: string, labels?: Record<string, string>) => Promise<number>
}

export type TestEngineOptions = Partial<EngineSettings> & {
  clock?: Clock
  outbound?: OutboundOptions
  log?: Log
  random?: () => number
}

export function startTestEngine(postgres: Postgres, options: TestEngineOptions = {}): TestEngine {
  const { clock, outbound, random, log, ...settings } = options
  const metrics = createMetrics('test')
  const outboundSide = createOutbound(outbound)
  const engine = startEngine(
    {
      postgres: clock === undefined ? postgres : atTime(postgres, clock),
      outbound: outboundSide,
      tracing: null,
      opener: createWebhookOpener({ WEBHOOK_KEY: toDerivedKey(testMasterKey, 'WEBHOOK_KEY') }),
      log: log ?? createLog('test', 'silent'),
      metrics,
      nowMs: clock?.nowMs ?? Date.now,
      monotonicMs: clock?.nowMs ?? (() => performance.now()),
      random: random ?? Math.random,
      newId: randomUUID,
    },
    {
      limits: { total: 64, retries: 32, perTenant: 16 },
      allowPrivate: true,
      sweepMs: 20,
      ...settings,
    },
  )
  const count: TestEngine['count'] = async (name, labels = {}) => {
    const found = await metrics.registry.getSingleMetric(name)!.get()
    return found.values
      .filter((value) => Object.entries(labels).every(([k, v]) => value.labels[k] === v))
      .reduce((sum, { value }) => sum + value, 0)
  }
  return {
    ...engine,
    count,
    sweeps: () => count('di_delivery_sweeps_total', { result: 'ok' }),
    stop: async (graceMs) => {
      await engine.stop(graceMs)
      outboundSide.close()
    },
  }
}
