/**
 * Records what shadow policies would have decided, after the decisions of a batch and before its
 * acknowledgement. It raises no alert and changes no counter. A failure is counted, logged once and
 * skipped. It never throws, and delays a batch by a bounded time (two seconds unless configured);
 * after a delay or a failure it pauses for ten seconds.
 */
import { LRUCache } from 'lru-cache'
import type { Policy } from '#shared/core/policies/policy.ts'
import {
  type CompiledShadow,
  compileShadow,
  decideShadow,
  findShadowVersion,
  sharesRiskFeatures,
} from '#shared/core/policies/shadow.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import type { RiskFeatures } from '#shared/core/velocity/risk.ts'
import type {
  ShadowDecision,
  ShadowDecisionWriter,
} from '#shared/io/policies/shadow-decision-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'
import type { RiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import type { ShadowObserver } from '../metrics.ts'
import type { ShadowVersions } from './shadow-versions.ts'

/** A decided event with its policy, its risk features and the decision. */
export type Decided = { event: AcceptedEvent; policy: Policy; features: RiskFeatures; risk: Risk }

type ShadowDeps = {
  versions: ShadowVersions
  findPolicy: (policyHash: string) => Promise<Policy | null>
  loadRiskFeatures: RiskFeatureStore['loadRiskFeatures']
  insertDecisions: ShadowDecisionWriter['insertDecisions']
  observe: ShadowObserver
  log: Pick<Log, 'warn'>
  /** The monotonic clock. */
  nowMs: () => number
  /** How long a batch may be delayed. */
  delayMaxMs: number
}

export type ShadowDecisions = {
  /** Never throws. One call at a time. */
  record: (decided: readonly Decided[]) => Promise<void>
}

const restMs = 10_000
/** Compiled documents kept, a few hundred KB each at most. */
const compiledMax = 1_000

/** The recording of one batch. When it takes too long, its events count as late. */
type Run = {
  isLate: boolean
  /** Events neither decided nor skipped yet; null before they are known. */
  open: number | null
}

type State = ShadowDeps & {
  /** By policy hash; null for a document that cannot be used. */
  compiled: LRUCache<string, { shadow: CompiledShadow | null }>
  /** Failures that were logged and have not ended. */
  logged: Set<string>
  /** Whether a shadow policy has the same risk features as an active policy. */
  shared: WeakMap<Policy, WeakMap<Policy, boolean>>
}

/** An event with the shadow policy that decides it. */
type ShadowEvent = Decided & { version: number; policyHash: string; shadow: CompiledShadow }

export function createShadowDecisions(deps: ShadowDeps): ShadowDecisions {
  const { versions, observe, nowMs, delayMaxMs } = deps
  const state: State = {
    ...deps,
    compiled: new LRUCache({ max: compiledMax }),
    logged: new Set(),
    shared: new WeakMap(),
  }
  let restsUntilMs = Number.NEGATIVE_INFINITY
  let running = false
  const rest = () => {
    restsUntilMs = nowMs() + restMs
  }
  return {
    record: async (decided) => {
      if (decided.length === 0) return
      if (running || nowMs() < restsUntilMs) {
        observe.skipped('resting', countShadowed(decided, versions))
        return
      }
      running = true
      const run: Run = { isLate: false, open: null }
      const work = recordAll(state, decided, run)
        .then((outcome) => {
          if (outcome === 'failed') rest()
        })
        .finally(() => {
          running = false
        })
      if (await within(work, delayMaxMs)) return
      run.isLate = true
      rest()
      observe.skipped('late', run.open ?? countShadowed(decided, versions))
      warnOnce(state, 'late', 'shadow decisions take too long')
    },
  }
}

const countShadowed = (decided: readonly Decided[], versions: ShadowVersions): number =>
  decided.filter(({ event }) => findShadowVersion(versions.of(event.tenant_id), event.received_at))
    .length

async function recordAll(
  state: State,
  decided: readonly Decided[],
  run: Run,
): Promise<'done' | 'failed'> {
  const { versions, observe } = state
  try {
    await versions.refresh(decided.reduce(toLatest, 0))
    state.logged.delete('versions')
  } catch (error) {
    observe.failed('versions')
    warnOnce(state, 'versions', 'shadow policies cannot be read; the last known ones decide', error)
  }
  if (!versions.any()) return 'done'
  try {
    const shadowed = await findShadowed(state, decided, run)
    run.open = shadowed.length
    if (shadowed.length === 0) return 'done'
    const features = await loadAllFeatures(state, shadowed)
    if (run.isLate) return 'failed'
    const decisions = decideAll(state, shadowed, features)
    run.open = decisions.length
    await observe.timed('shadow', state.insertDecisions(decisions))
    // Late events were counted before.
    if (!run.isLate) observe.decided(decisions.length)
    state.logged.delete('store')
    state.logged.delete('late')
    return 'done'
  } catch (error) {
    if (!run.isLate) observe.skipped('store', run.open ?? 0)
    warnOnce(state, 'store', 'shadow decisions cannot be recorded', error)
    return 'failed'
  }
}

const toLatest = (latest: number, { event }: Decided) => Math.max(latest, event.received_at)

function warnOnce({ logged, log }: State, what: string, text: string, error?: unknown): void {
  if (logged.has(what)) return
  logged.add(what)
  log.warn({ err: error }, text)
}

/** The events that a shadow policy decides, each with its policy. */
async function findShadowed(
  state: State,
  decided: readonly Decided[],
  run: Run,
): Promise<ShadowEvent[]> {
  const shadowed: ShadowEvent[] = []
  for (const one of decided) {
    const { tenant_id: tenantId, received_at: receivedAtMs } = one.event
    const version = findShadowVersion(state.versions.of(tenantId), receivedAtMs)
    if (version === null) continue
    const { policyHash } = version
    const shadow = await compile(state, policyHash)
    if (shadow !== null) shadowed.push({ ...one, version: version.version, policyHash, shadow })
    else if (!run.isLate) state.observe.skipped('policy', 1)
  }
  return shadowed
}

/** @returns null for a document that cannot be used @throws when it cannot be read */
async function compile(state: State, policyHash: string): Promise<CompiledShadow | null> {
  const { compiled } = state
  const known = compiled.get(policyHash)
  if (known !== undefined) return known.shadow
  const policy = await state.findPolicy(policyHash)
  let shadow: CompiledShadow | null = null
  try {
    shadow = policy === null ? null : compileShadow(policy)
  } catch (error) {
    warnOnce(state, policyHash, `shadow policy ${policyHash} cannot be compiled`, error)
  }
  if (policy === null) {
    warnOnce(state, policyHash, `shadow policy ${policyHash} is missing or unreadable`)
  }
  compiled.set(policyHash, { shadow })
  return shadow
}

/** Reuses the risk features of the active policy where the shadow policy needs the same. */
async function loadAllFeatures(
  state: State,
  shadowed: readonly ShadowEvent[],
): Promise<RiskFeatures[]> {
  const own = shadowed.filter((one) => !isShared(state, one))
  if (own.length === 0) return shadowed.map((one) => one.features)
  const shadowOf = new Map(own.map(({ event, shadow }) => [event, shadow.policy]))
  const events = own.map(({ event }) => event)
  const found = await state.observe.timed(
    'shadow_risk_features',
    state.loadRiskFeatures(events, (event) => shadowOf.get(event)!),
  )
  const featuresOf = new Map(events.map((event, index) => [event, found[index]!]))
  return shadowed.map(({ event, features }) => featuresOf.get(event) ?? features)
}

function isShared({ shared }: State, { policy, shadow }: ShadowEvent): boolean {
  let of = shared.get(policy)
  if (of === undefined) {
    of = new WeakMap()
    shared.set(policy, of)
  }
  let answer = of.get(shadow.policy)
  if (answer === undefined) {
    answer = sharesRiskFeatures(policy, shadow.policy)
    of.set(shadow.policy, answer)
  }
  return answer
}

/** Skips events that cannot be decided. */
function decideAll(
  state: State,
  shadowed: readonly ShadowEvent[],
  features: readonly RiskFeatures[],
): ShadowDecision[] {
  const decisions: ShadowDecision[] = []
  shadowed.forEach(({ event, risk, version, policyHash, shadow }, index) => {
    try {
      const verdict = decideShadow(event, shadow, features[index]!)
      decisions.push({ event, risk, shadow: { version, policyHash, verdict } })
    } catch (error) {
      state.observe.skipped('defect', 1)
      warnOnce(state, `defect ${policyHash}`, 'a shadow policy cannot decide an event', error)
    }
  })
  return decisions
}
