/**
 * Records what shadow policies would have decided, after a batch's own decisions are done and
 * before it is acknowledged. It touches nothing else: no alert, no counter, no hint. Whatever fails
 * here is counted, logged once and skipped; it never throws, and it holds a batch up for a bounded
 * time, two seconds unless configured, after which it rests for ten.
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

/** An event that was decided, and on what. */
export type Decided = { event: AcceptedEvent; policy: Policy; features: RiskFeatures; risk: Risk }

export type ShadowDeps = {
  versions: ShadowVersions
  findPolicy: (policyHash: string) => Promise<Policy | null>
  loadRiskFeatures: RiskFeatureStore['loadRiskFeatures']
  insertDecisions: ShadowDecisionWriter['insertDecisions']
  observe: ShadowObserver
  log: Pick<Log, 'warn'>
  /** The monotonic clock. */
  nowMs: () => number
  /** How long a batch may be held up. */
  holdMaxMs: number
}

export type ShadowDecisions = {
  /** Never throws. One call at a time. */
  record: (decided: readonly Decided[]) => Promise<void>
}

const restMs = 10_000
/** Compiled documents kept, a few hundred KB each at most. */
const compiledMax = 1_000

/** One batch's decisions, which may be given up: each of its events is then counted as late. */
type Run = {
  gaveUp: boolean
  /** Events that are neither decided nor skipped yet; null until it is known which are asked. */
  open: number | null
}

type State = ShadowDeps & {
  /** By content address; null for one that cannot be used. */
  compiled: LRUCache<string, { shadow: CompiledShadow | null }>
  /** What was logged and has not worked since. */
  said: Set<string>
  shared: WeakMap<Policy, WeakMap<Policy, boolean>>
}

/** An event with the shadow that is to decide it. */
type Asked = Decided & { version: number; policyHash: string; shadow: CompiledShadow }

export function createShadowDecisions(deps: ShadowDeps): ShadowDecisions {
  const { versions, observe, nowMs, holdMaxMs } = deps
  const state: State = {
    ...deps,
    compiled: new LRUCache({ max: compiledMax }),
    said: new Set(),
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
        observe.skipped('resting', countAsked(decided, versions))
        return
      }
      running = true
      const run: Run = { gaveUp: false, open: null }
      const work = recordAll(state, decided, run)
        .then((outcome) => {
          if (outcome === 'failed') rest()
        })
        .finally(() => {
          running = false
        })
      if (await within(work, holdMaxMs)) return
      run.gaveUp = true
      rest()
      observe.skipped('late', run.open ?? countAsked(decided, versions))
      warnOnce(state, 'late', 'shadow decisions take too long')
    },
  }
}

const countAsked = (decided: readonly Decided[], versions: ShadowVersions): number =>
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
    state.said.delete('versions')
  } catch (error) {
    observe.failed('versions')
    warnOnce(
      state,
      'versions',
      'shadow policies cannot be read: what was known last decides',
      error,
    )
  }
  if (!versions.any()) return 'done'
  try {
    const asked = await findAsked(state, decided, run)
    run.open = asked.length
    if (asked.length === 0) return 'done'
    const features = await loadAllFeatures(state, asked)
    if (run.gaveUp) return 'failed'
    const decisions = decideAll(state, asked, features)
    run.open = decisions.length
    await observe.timed('shadow', state.insertDecisions(decisions))
    // What was given up is counted already, though it is there.
    if (!run.gaveUp) observe.decided(decisions.length)
    state.said.delete('store')
    state.said.delete('late')
    return 'done'
  } catch (error) {
    if (!run.gaveUp) observe.skipped('store', run.open ?? 0)
    warnOnce(state, 'store', 'shadow decisions cannot be recorded', error)
    return 'failed'
  }
}

const toLatest = (latest: number, { event }: Decided) => Math.max(latest, event.received_at)

function warnOnce({ said, log }: State, what: string, text: string, error?: unknown): void {
  if (said.has(what)) return
  said.add(what)
  log.warn({ err: error }, text)
}

/** The events of tenants that have a shadow, each with the one that decides it. */
async function findAsked(state: State, decided: readonly Decided[], run: Run): Promise<Asked[]> {
  const asked: Asked[] = []
  for (const one of decided) {
    const { tenant_id: tenantId, received_at: receivedAtMs } = one.event
    const version = findShadowVersion(state.versions.of(tenantId), receivedAtMs)
    if (version === null) continue
    const { policyHash } = version
    const shadow = await compile(state, policyHash)
    if (shadow !== null) asked.push({ ...one, version: version.version, policyHash, shadow })
    else if (!run.gaveUp) state.observe.skipped('policy', 1)
  }
  return asked
}

/** @throws when the document cannot be asked for; one that is of no use is null */
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

/** What was found out for the active policy will mostly do; only the rest is asked again. */
async function loadAllFeatures(state: State, asked: readonly Asked[]): Promise<RiskFeatures[]> {
  const own = asked.filter((one) => !isShared(state, one))
  if (own.length === 0) return asked.map((one) => one.features)
  const shadowOf = new Map(own.map(({ event, shadow }) => [event, shadow.policy]))
  const events = own.map(({ event }) => event)
  const found = await state.observe.timed(
    'shadow_risk_features',
    state.loadRiskFeatures(events, (event) => shadowOf.get(event)!),
  )
  const featuresOf = new Map(events.map((event, index) => [event, found[index]!]))
  return asked.map(({ event, features }) => featuresOf.get(event) ?? features)
}

function isShared({ shared }: State, { policy, shadow }: Asked): boolean {
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

/** One event that cannot be decided does not keep the others from it. */
function decideAll(
  state: State,
  asked: readonly Asked[],
  features: readonly RiskFeatures[],
): ShadowDecision[] {
  const decisions: ShadowDecision[] = []
  asked.forEach(({ event, risk, version, policyHash, shadow }, index) => {
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
