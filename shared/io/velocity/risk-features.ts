/**
 * Loads the risk features of events: what the stored events before them show. The events and all
 * events before them must be stored; the result is the same for days.
 */

import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import type { PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import { toAssertion } from '#shared/core/installs/reused-counters.ts'
import type { SharedKey } from '#shared/core/installs/shared-keys.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import {
  findPlaceholderIds,
  type IdField,
  isPlaceholderId,
} from '#shared/core/telemetry/placeholder-ids.ts'
import { metricSources } from '#shared/core/velocity/activity-counts.ts'
import { listWeighedFacts, noOrderFacts } from '#shared/core/velocity/attestation-findings.ts'
import type { RiskFeatures } from '#shared/core/velocity/risk.ts'
import {
  findSignalsMissing,
  needsBaseline,
  toFilledCategories,
} from '#shared/core/velocity/signals-missing.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Phones } from '#shared/io/identity/phones.ts'
import {
  createInstallKeyStore,
  type InstallKeyStore,
} from '#shared/io/velocity/install-keys-store.ts'
import { createActivityStore } from './activity-store.ts'
import type { ActivitySubject } from './activity-subjects.ts'
import { countPhones, toActivityRules, withPhoneCounts } from './phone-counts.ts'
import { createSdkBaselineStore, type SdkBaselineStore } from './sdk-baseline-store.ts'

export type FeatureEvent = Pick<
  AcceptedEvent,
  | 'tenant_id'
  | 'event_id'
  | 'streamOffset'
  | 'received_at'
  | 'body'
  | 'filledCategories'
  | 'install'
  | 'connection'
  | 'traits'
>

export type RiskFeatureStore = {
  /** @returns the risk features of each event, in their order */
  loadRiskFeatures: <E extends FeatureEvent>(
    events: readonly E[],
    policyOf: (event: E) => Policy,
  ) => Promise<RiskFeatures[]>
}

/**
 * Creates the store of one ClickHouse.
 * @param phones of the same ClickHouse
 */
export function createRiskFeatureStore(
  clickhouse: Clickhouse,
  phones: Pick<Phones, 'findFacts' | 'findLinks'>,
): RiskFeatureStore {
  const activity = createActivityStore(clickhouse)
  const baselines = createSdkBaselineStore(clickhouse)
  const keys = createInstallKeyStore(clickhouse, phones)
  return {
    loadRiskFeatures: async (events, policyOf) => {
      const subjects = events.map((event) => toSubject(event, policyOf(event)))
      const [counted, missing, shared, found] = await Promise.all([
        activity.countActivity(subjects),
        findMissingSignals(baselines, events, policyOf),
        findSharedKeys(keys, events, policyOf),
        findPhones(phones, events),
      ])
      const phoneEvents = events.map((event, index) => {
        const { tenantId, streamOffset, receivedAtMs } = subjects[index]!
        const { velocity } = policyOf(event)
        const phone = found[index]!
        return { tenantId, streamOffset, atMs: receivedAtMs, velocity, phone }
      })
      const phoneCounts = await countPhones({ clickhouse, phones }, phoneEvents)
      return counted.map(({ counterBefore, replay, ...one }, index) => {
        const { assertion } = subjects[index]!
        const reusedCounter =
          counterBefore === null || assertion === null
            ? null
            : { counter: assertion.counter, highest: counterBefore }
        const sharedKey = shared[index]!
        const differs = found[index]?.otherPhone ?? []
        const otherPhone = differs.length > 0 ? differs : null
        const facts = { sharedKey, reusedCounter, replay, otherPhone }
        const hasOrder = Object.values(facts).some((fact) => fact !== null)
        const order = hasOrder ? facts : noOrderFacts
        const counts = withPhoneCounts(one.counts, policyOf(events[index]!), phoneCounts[index]!)
        const phone = found[index]!
        return { ...one, counts, missing: missing[index]!, order, phone }
      })
    },
  }
}

/** Events without traits, and those of devices that many share, are on no phone. */
async function findPhones<E extends FeatureEvent>(
  phones: Pick<Phones, 'findFacts'>,
  events: readonly E[],
): Promise<(PhoneFacts | null)[]> {
  const found = new Array<PhoneFacts | null>(events.length).fill(null)
  const of = events.flatMap((event, index) => {
    const { tenant_id: tenantId, body, received_at: atMs } = event
    const traits = toInstallTraits(event)
    if (traits === null || isPlaceholderId(body.device_id)) return []
    return [{ index, tenantId, deviceId: body.device_id, atMs, traits }]
  })
  if (of.length === 0) return found
  const facts = await phones.findFacts(of)
  of.forEach(({ index }, at) => {
    found[index] = facts[at]!
  })
  return found
}

/** Looks keys up only where an install has one and the policy weighs it. */
async function findSharedKeys<E extends FeatureEvent>(
  keys: InstallKeyStore,
  events: readonly E[],
  policyOf: (event: E) => Policy,
): Promise<(SharedKey | null)[]> {
  const found = new Array<SharedKey | null>(events.length).fill(null)
  const keyed = events.flatMap((event, index) => {
    const attestedKey = event.install?.attested_key ?? null
    if (attestedKey === null || !listWeighedFacts(policyOf(event)).sharedKey) return []
    const { tenant_id: tenantId, streamOffset, body } = event
    return [{ index, tenantId, deviceId: body.device_id, attestedKey, streamOffset }]
  })
  if (keyed.length === 0) return found
  const shared = await keys.findSharedKeys(keyed)
  keyed.forEach(({ index }, at) => {
    found[index] = shared[at]!
  })
  return found
}

/** Placeholder ids are not counted. A retry is detected all the same. */
function toSubject(event: FeatureEvent, policy: Policy): ActivitySubject {
  const { body } = event
  const velocity = toActivityRules(policy)
  const fields = findPlaceholderIds(body)
  const isReal = (field: IdField) => !fields.includes(field)
  const weighed = listWeighedFacts(policy)
  const rules = velocity.filter(({ metric }) => {
    const { kind } = metricSources[metric]
    return kind === 'user' || kind === 'network' || isReal(`${kind}_id`)
  })
  return {
    tenantId: event.tenant_id,
    deviceId: body.device_id,
    sessionId: body.session_id,
    userIds: (['user_id', 'account_id'] as const).flatMap((field) =>
      body[field] !== undefined && isReal(field) ? [body[field]] : [],
    ),
    network: event.connection?.network ?? null,
    eventId: event.event_id,
    streamOffset: event.streamOffset,
    receivedAtMs: event.received_at,
    rules: fields.length === 0 ? velocity : rules,
    assertion: weighed.reusedCounter ? toAssertion(event.install) : null,
    seeksReplay: weighed.replay && isReal('device_id'),
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
