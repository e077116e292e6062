/**
 * Writes outcomes to Postgres in batches: outcomes that arrive during a write go into the next one,
 * so an idle process adds no delay. During an outage outcomes are kept until they are written,
 * since an answered request must not be sent again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type {
  DeliveryOutcome,
  Recorded,
  RecordedHealth,
} from '#shared/io/deliveries/record-outcomes.ts'
import { isPassing } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import { toLogFields } from './log-fields.ts'

export type OutcomeRecorder = {
  /** Queues an outcome; it is written as soon as possible. */
  add: (outcome: DeliveryOutcome) => void
  /** Outcomes not yet written. */
  waiting: () => number
  /** Resolves when all outcomes are written. */
  drained: () => Promise<void>
  /** Drops outcomes that cannot be written; their claims expire. */
  stop: () => void
}

type RecorderDeps = {
  record: (outcomes: readonly DeliveryOutcome[]) => Promise<Recorded>
  /** Called for each webhook that fails or has recovered, after it is recorded. */
  onHealth: (health: RecordedHealth) => Promise<void>
  monotonicMs: () => number
  log: Log
  metrics: DeliveryMetrics
}

/**
 * Time from the start of one statement to the next. A statement costs Postgres almost a millisecond
 * however few outcomes it has. The first outcome does not wait.
 */
const writeEveryMs = 10
/** Outcomes per statement. Responses are up to 4 KiB each, so a batch is at most 2 MiB. */
const batchMax = 500
const pauseMaxMs = 1_000

export function createOutcomeRecorder(deps: RecorderDeps): OutcomeRecorder {
  const { record, onHealth, monotonicMs, log, metrics } = deps
  const queue: DeliveryOutcome[] = []
  let drains: (() => void)[] = []
  let writing = false
  let stopped = false
  let lastWriteMs = Number.NEGATIVE_INFINITY

  const write = async (batch: DeliveryOutcome[]): Promise<void> => {
    const { recorded, switchedOff, health } = await record(batch)
    metrics.countOutcomes(batch, recorded)
    for (const tenantId of switchedOff) {
      metrics.switchedOff.inc({ reason: 'gone' })
      log.warn({ tenant_id: tenantId }, 'a receiver answered 410: its webhook is off')
    }
    for (const one of health) {
      // The next failed attempt tries again.
      await onHealth(one).catch((error: unknown) =>
        log.warn({ err: error, tenant_id: one.tenantId }, 'a webhook could not be switched off'),
      )
    }
  }
  /**
   * After Postgres rejects a batch: one bad outcome must not block the others. Each leaves the
   * queue as it is written, so none is written again when Postgres fails at a later one.
   */
  const writeOneByOne = async (batch: DeliveryOutcome[]): Promise<void> => {
    for (const outcome of batch) {
      try {
        await write([outcome])
      } catch (error) {
        if (isPassing(error)) throw error
        log.error({ err: error, ...toLogFields(outcome) }, 'an outcome cannot be recorded')
        // Texts from the receiver are the likely cause: record the outcome without them.
        await write([withoutTexts(outcome)]).catch((again: unknown) => {
          if (isPassing(again)) throw again
          metrics.unrecorded.inc()
        })
      }
      queue.shift()
    }
  }
  const run = async (): Promise<void> => {
    writing = true
    for (let pauseMs = 25; queue.length > 0 && !stopped; ) {
      const waitMs = lastWriteMs + writeEveryMs - monotonicMs()
      if (waitMs > 0) await pause(waitMs)
      const batch = queue.slice(0, batchMax)
      lastWriteMs = monotonicMs()
      try {
        const refused = await write(batch).then(
          () => false,
          (error: unknown) => {
            if (isPassing(error)) throw error
            return true
          },
        )
        if (refused) await writeOneByOne(batch)
        else queue.splice(0, batch.length)
        pauseMs = 25
      } catch (error) {
        log.warn({ err: error, waiting: queue.length }, 'outcomes wait for Postgres')
        await pause(pauseMs)
        pauseMs = Math.min(pauseMaxMs, pauseMs * 2)
      }
    }
    writing = false
    for (const drained of drains.splice(0)) drained()
  }

  return {
    add: (outcome) => {
      queue.push(outcome)
      if (!writing && !stopped) void run()
    },
    waiting: () => queue.length,
    drained: () =>
      writing ? new Promise((resolve) => drains.push(() => resolve())) : Promise.resolve(),
    stop: () => {
      stopped = true
      if (queue.length > 0) log.error({ waiting: queue.length }, 'outcomes were not recorded')
      const waiting = drains
      drains = []
      for (const drained of waiting) drained()
    },
  }
}

function withoutTexts(outcome: DeliveryOutcome): DeliveryOutcome {
  if (outcome.attempt === null) return outcome
  return { ...outcome, attempt: { ...outcome.attempt, error: null, answer: null, address: null } }
}
