/**
 * Turns what only the order of the stream tells of an install into points: a shared key, a reused
 * counter, a replay. The weights are those of the policy's server signals; like all risk features
 * they raise `risk_score` and never `rasp_score`.
 */
import { retryMaxMs } from '#shared/core/base/limits/history.ts'
import { isLate, type Replay } from '#shared/core/installs/replays.ts'
import { type KeyKind, type SharedKey, sharedKeyMax } from '#shared/core/installs/shared-keys.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import { compileSuppressions, type ScoringContext } from '#shared/core/scoring/suppressions.ts'
import { attestationSignals } from '#shared/core/signals/catalog/attestation.ts'
import type { Finding } from './correlation.ts'

/** What the order of the stream tells of an event's install and device, as of the event. */
export type OrderFacts = {
  sharedKey: SharedKey | null
  /** A counter that did not rise, and the highest one before it. */
  reusedCounter: { counter: number; highest: number } | null
  /** The replay since the device's last event. */
  replay: Replay | null
  /** What shows that another phone sent the device id first; null where nothing does. */
  otherPhone: readonly string[] | null
}

export const noOrderFacts: OrderFacts = {
  sharedKey: null,
  reusedCounter: null,
  replay: null,
  otherPhone: null,
}

/** The server signals of `attestation` that the scorer alone can know. */
const orderSignals = ['shared_key', 'counter_reused', 'replayed', 'device_id_shared'] as const
type OrderSignal = (typeof orderSignals)[number]
const toPath = (signal: OrderSignal) => `attestation.${signal}`
const orderPaths = orderSignals.map(toPath)

type WeighedPolicy = Pick<Policy, 'serverCategories' | 'suppressions'>

/** The points of a signal that is true; 0 where the policy does not weigh it. */
function weightOf({ serverCategories }: WeighedPolicy, signal: OrderSignal): number {
  const weight = serverCategories?.attestation?.signals[signal]
  return typeof weight === 'number' ? weight : 0
}

type WeighedFacts = Readonly<Record<keyof OrderFacts, boolean>>

/** By policy: it is asked for every event. */
const weighedFacts = new WeakMap<object, WeighedFacts>()

/** Which of the facts a policy weighs: of the others nothing needs to be read. */
export function listWeighedFacts(policy: WeighedPolicy): WeighedFacts {
  const known = weighedFacts.get(policy)
  if (known !== undefined) return known
  const isWeighed = (signal: OrderSignal) => weightOf(policy, signal) > 0
  const weighed = {
    sharedKey: isWeighed('shared_key'),
    reusedCounter: isWeighed('counter_reused'),
    replay: isWeighed('replayed'),
    otherPhone: isWeighed('device_id_shared'),
  }
  weighedFacts.set(policy, weighed)
  return weighed
}

/** Whether a policy weighs the same facts as another one, or fewer. */
export function weighsNoMore(policy: WeighedPolicy, than: WeighedPolicy): boolean {
  const own = listWeighedFacts(policy)
  const others = listWeighedFacts(than)
  return Object.entries(own).every(([fact, is]) => !is || others[fact as keyof OrderFacts])
}

/**
 * The findings of an event, within what the edge's reasons leave of the category's cap.
 * @param reasons of the edge
 */
export function findAttestation(
  facts: OrderFacts,
  policy: WeighedPolicy,
  { reasons, context }: { reasons: readonly Reason[]; context: ScoringContext },
): Finding[] {
  const found = toEvidence(facts)
  if (found.length === 0) return []
  const suppressed = compileSuppressions(policy.suppressions, orderPaths)
  const findings = found.flatMap(({ signal, evidence }): Finding[] => {
    const weight = weightOf(policy, signal)
    const path = toPath(signal)
    const isOff = suppressed.get(path)?.some((one) => one.acts(context)) === true
    if (weight === 0 || isOff) return []
    const { flag: code } = attestationSignals[signal]
    return [{ code, weight, evidence: { ...evidence, signal: path } }]
  })
  const cap = policy.serverCategories?.attestation?.cap ?? 0
  return capFindings(findings, cap - sumOfCategory(reasons))
}

type Found = { signal: OrderSignal; evidence: Finding['evidence'] }

const metricOfKind: Record<KeyKind, string> = {
  key: 'phones_per_attested_key',
  remote_issuer: 'phones_per_issuer',
  issuer: 'models_per_issuer',
}

function toEvidence({ sharedKey, reusedCounter, replay, otherPhone }: OrderFacts): Found[] {
  const found: Found[] = []
  const add = (signal: OrderSignal, evidence: Finding['evidence']) =>
    found.push({ signal, evidence })
  if (sharedKey !== null) {
    const { kind, count, phones } = sharedKey
    const threshold = sharedKeyMax[kind]
    const named = phones.length > 0 ? { phones } : {}
    add('shared_key', { metric: metricOfKind[kind], count, threshold, window: 'all', ...named })
  }
  if (reusedCounter !== null) {
    const { counter, highest: count } = reusedCounter
    const threshold = counter - 1
    add('counter_reused', { metric: 'counter_before', count, threshold, window: '30d' })
  }
  if (replay !== null) {
    add('replayed', toReplayEvidence(replay))
  }
  if (otherPhone !== null) {
    const evidence = { metric: 'phones_per_device', count: 2, threshold: 1, window: 'all' }
    add('device_id_shared', { ...evidence, differs: otherPhone })
  }
  return found
}

/** By what a copy is a replay: after how long it came, and whether from another network. */
function toReplayEvidence(replay: Replay): Finding['evidence'] {
  const seconds = Math.floor((replay.atMs - replay.firstAtMs) / 1_000)
  const more = {
    window: '30d',
    replayed_at: new Date(replay.atMs).toISOString(),
    ...(replay.networkChanged ? { network_changed: true } : {}),
  }
  if (isLate(replay)) {
    const threshold = retryMaxMs / 1_000
    return { metric: 'seconds_after_first_copy', count: seconds, threshold, ...more }
  }
  const evidence = { metric: 'networks_of_event', count: 2, threshold: 1, ...more }
  return { ...evidence, seconds_after_first_copy: seconds }
}

/** The points of the edge's reasons that have a signal of the category. */
function sumOfCategory(reasons: readonly Reason[]): number {
  let sum = 0
  for (const { weight, evidence } of reasons) {
    const paths: unknown = evidence.signals
    if (!Array.isArray(paths)) continue
    if (paths.some((path) => String(path).startsWith('attestation.'))) sum += weight
  }
  return sum
}

/** The heaviest findings keep their points; what the cap takes is in their evidence. */
function capFindings(findings: Finding[], cap: number): Finding[] {
  let left = Math.max(0, cap)
  return findings
    .sort((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
    .map((finding) => {
      const weight = Math.min(finding.weight, left)
      left -= weight
      if (weight === finding.weight) return finding
      return { ...finding, weight, evidence: { ...finding.evidence, capped: true } }
    })
}
