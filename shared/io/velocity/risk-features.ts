/**
 * Loads the risk features of events: what the stored events before them show. The events and all
 * events before them must be stored; the result is the same for days.
 */

import type { Policy, VelocityRule } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findPlaceholderIds, type IdField } from '#shared/core/telemetry/placeholder-ids.ts'
import { metricSources } from '#shared/core/velocity/activity-counts.ts'
import type { RiskFeatures } from '#shared/core/velocity/risk.ts'
import {
  findSignalsMissing,
  needsBaseline,
  toFilledCategories,
} from '#shared/core/velocity/signals-missing.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type ActivitySubject, createActivityStore } from './activity-store.ts'
import { createSdkBaselineStore, type SdkBaselineStore } from './sdk-baseline-store.ts'

export type FeatureEvent = Pick<
  AcceptedEvent,
  'tenant_id' | 'event_id' | 'streamOffset' | 'received_at' | 'body' | 'filledCategories'
>

export type RiskFeatureStore = {
  /** @returns the risk features of each event, in their order */
  loadRiskFeatures: <E extends FeatureEvent>(
    events: readonly E[],
    policyOf: (event: E) => Policy,
  ) => Promise<RiskFeatures[]>
}

/** Creates the store of one ClickHouse. */
export function createRiskFeatureStore(clickhouse: Clickhouse): RiskFeatureStore {
  const activity = createActivityStore(clickhouse)
  const baselines = createSdkBaselineStore(clickhouse)
  return {
    loadRiskFeatures: async (events, policyOf) => {
      const subjects = events.map((event) => toSubject(event, policyOf(event).velocity))
      const [counted, missing] = await Promise.all([
        activity.countActivity(subjects),
        findMissingSignals(baselines, events, policyOf),
      ])
      return counted.map((one, index) => ({ ...one, missing: missing[index]! }))
    },
  }
}

/** Placeholder ids are not counted. A retry is detected all the same. */
function toSubject(event: FeatureEvent, velocity: readonly VelocityRule[]): ActivitySubject {
  const { body } = event
  const fields = findPlaceholderIds(body)
  const isReal = (field: IdField) => !fields.includes(field)
  const rules = velocity.filter(({ metric }) => {
    const { kind } = metricSources[metric]
    return kind === 'user' || isReal(`${kind}_id`)
  })
  return {
    tenantId: event.tenant_id,
    deviceId: body.device_id,
    sessionId: body.session_id,
    userIds: (['user_id', 'account_id'] as const).flatMap((field) =>
      body[field] !== undefined && isReal(field) ? [body[field]] : [],
    ),
    eventId: event.event_id,
    streamOffset: event.streamOffset,
    receivedAtMs: event.received_at,
    rules: fields.length === 0 ? velocity : rules,
  }
}

/** Loads baselines only where a category is empty and the policy has a rule for it. */
async function findMissingSignals<E extends FeatureEvent>(
  baselines: SdkBaselineStore,
  events: readonly E[],
  policyOf: (event: E) => Policy,
): Promise<RiskFeatures['missing'][]> {
  const findings = new Array<RiskFeatures['missing']>(events.length).fill(null)
  const open = events
    .map((event, index) => {
      const { filledCategories, body } = event
      return {
        event,
        index,
        filled: filledCategories ?? toFilledCategories(body.signals as Signals),
      }
    })
    .filter(({ event, filled }) => needsBaseline(filled, policyOf(event)))
  if (open.length === 0) return findings
  const found = await baselines.loadBaselines(
    open.map(({ event }) => ({
      tenantId: event.tenant_id,
      sdkVersion: event.body.sdk_meta.sdk_version,
      platform: event.body.sdk_meta.platform,
      atMs: event.received_at,
    })),
  )
  open.forEach(({ event, index, filled }, at) => {
    const about = { filled, baseline: found[at]!, sdkVersion: event.body.sdk_meta.sdk_version }
    findings[index] = findSignalsMissing(about, policyOf(event))
  })
  return findings
}
