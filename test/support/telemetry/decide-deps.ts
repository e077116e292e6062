/**
 * The dependencies of deciding a batch, in memory: they record raised alerts and reconciliation
 * entries.
 */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { ReconciliationEntry } from '#shared/core/reconciliation/reconciliation.ts'
import { noRiskFeatures } from '#shared/core/velocity/risk.ts'
import type { Decision } from '#shared/io/telemetry/decision-store.ts'
import type { FeatureEvent } from '#shared/io/velocity/risk-features.ts'
import type { DecideBatchDeps } from '../../../services/scorer/decide/decide-batch.ts'
import type { ScorerObserver } from '../../../services/scorer/metrics.ts'
import { createDecodedMessages } from '../../../services/scorer/store/decoded-messages.ts'

export function makeDecideDeps({
  onKnown = () => undefined,
  dropped = () => undefined,
}: {
  /** Called with the queried events; an error that it throws is the failure of the query. */
  onKnown?: (events: readonly FeatureEvent[]) => void
  dropped?: ScorerObserver['dropped']
} = {}) {
  const raised: AlertCandidate[] = []
  const entries: ReconciliationEntry[] = []
  const decisions: Decision[] = []
  const observe = {
    timed: (_: string, work: Promise<unknown>) => work,
    existing: () => undefined,
    raised: () => undefined,
    differing: () => undefined,
    retried: () => undefined,
    replayed: () => undefined,
    linked: () => undefined,
    dropped,
  } as unknown as ScorerObserver
  const decide: DecideBatchDeps = {
    messages: createDecodedMessages(1_000_000, () => true),
    observe,
    reconciliation: {
      insertEntries: async (some) => {
        entries.push(...some)
      },
      insertExpectedAlerts: async () => undefined,
    },
    decisions: {
      insertDecisions: async (some) => {
        decisions.push(...some)
      },
    },
    replays: { insertReplays: async () => undefined },
    phones: { insertLinks: async () => undefined },
    loadRiskFeatures: async (events) => {
      onKnown(events)
      return events.map(() => noRiskFeatures)
    },
    findPolicy: async () => defaultPolicy,
    readDecidedWatermark: async () => 6,
    findEarlierEvents: async () => [],
    findUnraised: async (candidates) => [...candidates],
    raiseAlerts: async (candidates) => {
      raised.push(...candidates)
      return { raised: [], existing: 0, strangers: [] } as never
    },
    publishHints: async () => undefined,
    shadow: { record: async () => undefined },
  }
  return { decide, raised, entries, decisions }
}
