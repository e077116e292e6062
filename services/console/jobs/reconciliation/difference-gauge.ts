/** The metrics of reconciliation: differences by stage, and how old the last comparison is. */
import { reconciliationStages } from '#shared/core/reconciliation/reconciliation.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { NamedDifference } from '#shared/io/reconciliation/reconciliation-store.ts'

/** A difference of one tenant and hour. Both are null for a lost message. */
export type FoundDifference = Omit<NamedDifference, 'stage'> & {
  stage: NamedDifference['stage'] | 'messages'
  tenantId: string | null
  hourMs: number | null
}

export type DifferenceGauge = {
  /** Replaces the differences of the hours from `fromMs` to before `toMs`, and lost messages. */
  replace: (span: Span, found: readonly FoundDifference[]) => void
  /** Sets every stage to 0, because another console reports. */
  reset: () => void
}

export type Span = { fromMs: number; toMs: number }

/**
 * Creates the gauge with every stage at 0.
 * @param nowMs the monotonic clock
 */
export function createDifferenceGauge(metrics: Metrics, nowMs: () => number): DifferenceGauge {
  const gauge = metrics.gauge(
    'di_reconciliation_difference',
    'Events, alerts and deliveries that differ between stages, by stage; 0 when all agree',
    { labels: ['stage'] },
  )
  // Before the first comparison the age is unknown; it counts from the start.
  let comparedAtMs = nowMs()
  metrics.gauge(
    'di_reconciliation_age_seconds',
    'Time since this console compared the stages, or since its start',
    {
      collect() {
        this.set((nowMs() - comparedAtMs) / 1000)
      },
    },
  )
  let current: readonly FoundDifference[] = []
  const set = (differences: readonly FoundDifference[]) => {
    current = differences
    for (const stage of ['messages', ...reconciliationStages]) {
      const ofStage = differences.filter((one) => one.stage === stage)
      gauge.set(
        { stage },
        ofStage.reduce((sum, { count }) => sum + count, 0),
      )
    }
  }
  set([])
  return {
    replace: ({ fromMs, toMs }, found) => {
      const others = current.filter(
        ({ hourMs }) => hourMs !== null && (hourMs < fromMs || hourMs >= toMs),
      )
      set([...others, ...found])
      comparedAtMs = nowMs()
    },
    reset: () => set([]),
  }
}
