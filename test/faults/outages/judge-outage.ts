/** Checks the calls, the readiness probes and the stored data after outages. */
import { SERVICE_NAMES } from '../../../deploy/local/stack/settings.ts'
import { percentile } from '../../support/process/percentile.ts'
import { seconds } from '../support/drill.ts'
import type { Call } from './load.ts'
import type { OutageFindings } from './read-back.ts'
import type { Probe } from './readiness-probes.ts'
import type { InjectedOutage, OutagesResult } from './run-outages.ts'

type Seen = Pick<OutagesResult, 'calls' | 'probes'>

/** How fast the service is during an outage and after it. */
export type OutageBounds = {
  /** Every submission gets a response within this time. */
  refusedMs: number
  /** The same once the edge has detected the outage, for 95 of 100. */
  refusedOnceKnownMs: number
  /** The api waits this long for a database that does not respond. */
  readMs: number
  /** Readiness must be correct after this time. */
  truthMs: number
}

/** On two quiet cores. */
export const quietBounds: OutageBounds = {
  refusedMs: 2_500,
  refusedOnceKnownMs: 300,
  readMs: 4_000,
  truthMs: 5_000,
}

/** On a machine that may be slow nothing is late: what happens counts, not when. */
export const unbounded: OutageBounds = {
  refusedMs: Infinity,
  refusedOnceKnownMs: Infinity,
  readMs: Infinity,
  truthMs: Infinity,
}

/**
 * After this time an edge has detected the outage: its lease has expired, or a publish has failed.
 */
const knownAfterMs = 3_000
/** Readiness is compared with the responses this long before and after. */
const aroundMs = 1_500
/** An acknowledgement that was written before the outage is read within this time. */
const inTransitMs = 200
/** ClickHouse restarts in this time after a full disk left a broken part. */
const startsWithinMs = 3_000

const ended = ({ begunMs, tookMs }: Call) => begunMs + tookMs

/** The submissions that began, and those that ended, during an outage. */
export function submissionsOf(
  { begunMs, endedMs }: InjectedOutage,
  calls: readonly Call[],
): Call[] {
  return calls.filter(
    (call) => call.kind === 'submit' && call.begunMs >= begunMs && ended(call) <= endedMs,
  )
}

/** @returns the guarantees that an outage broke */
export function judgeOutage(
  injected: InjectedOutage,
  { calls, probes }: Seen,
  bounds: OutageBounds,
): string[] {
  const { outage } = injected
  const wrong = [
    ...judgeIntake(injected, submissionsOf(injected, calls), bounds),
    ...judgeReads('alerts', injected, calls, bounds),
    ...judgeReads('device', injected, calls, bounds),
    ...judgeReadiness(injected, probes, bounds),
    ...judgeIngest(injected, { calls, probes }, bounds),
    ...(injected.drained ? [] : ['the backlog was not acknowledged in time']),
    ...(injected.readyAgain ? [] : ['not all were ready in time after the recovery']),
  ]
  return wrong.map((line) => `${outage.name}: ${line}`)
}

function judgeIntake(
  injected: InjectedOutage,
  own: readonly Call[],
  bounds: OutageBounds,
): string[] {
  const { outage, inForceMs } = injected
  const refused = own.filter(({ outcome }) => outcome === 'refused')
  const lost = own.filter(({ outcome }) => outcome === 'unknown').length
  const wrong: string[] = []
  const broken = (isBroken: boolean, what: string) => {
    if (isBroken) wrong.push(what)
  }
  broken(lost > 0, `${lost} submissions got no response`)
  if (outage.expected.intake === 'never') {
    const accepted = own.filter((call) => {
      return call.outcome === 'ok' && call.begunMs > inForceMs + inTransitMs
    }).length
    broken(accepted > 0, `${accepted} got a 200 without an acknowledgement of nats-server`)
  }
  if (outage.expected.intake === true) {
    broken(refused.length > 0, `${refused.length} submissions refused, though intake must continue`)
    return wrong
  }
  const slowest = Math.max(0, ...refused.map(({ tookMs }) => tookMs))
  const known = refused.filter(({ begunMs }) => begunMs > inForceMs + knownAfterMs)
  const knownMs = percentile(
    known.map(({ tookMs }) => tookMs),
    0.95,
  )
  const bare = refused.filter(({ status, retryAfter }) => status !== 503 || !retryAfter).length
  broken(refused.length === 0, 'nothing was refused: the outage had no effect')
  broken(slowest > bounds.refusedMs, `a refusal took ${Math.round(slowest)} ms`)
  broken(
    knownMs > bounds.refusedOnceKnownMs,
    `refusals took ${Math.round(knownMs)} ms (p95) once known`,
  )
  broken(bare > 0, `${bare} refusals were no 503 with Retry-After`)
  return wrong
}

function judgeReads(
  kind: 'alerts' | 'device',
  { outage, inForceMs, endedMs, restarts }: InjectedOutage,
  calls: readonly Call[],
  bounds: OutageBounds,
): string[] {
  const goesOn = outage.expected[kind]
  const own = calls.filter(
    (call) => call.kind === kind && call.begunMs > inForceMs + 1_000 && ended(call) < endedMs,
  )
  const failed = own.filter(({ outcome }) => outcome !== 'ok')
  const ok = own.length - failed.length
  const bare = failed.filter(({ status, retryAfter }) => status !== 503 || !retryAfter).length
  const awayMs = kind === 'device' ? (restarts.clickhouse ?? 0) * startsWithinMs : 0
  const failedForMs = failed.length === 0 ? 0 : failed.at(-1)!.begunMs - failed[0]!.begunMs
  const slowest = Math.max(0, ...own.map(({ tookMs }) => tookMs))
  const wrong: string[] = []
  if (bare > 0) wrong.push(`${bare} calls for ${kind} ended other than ok or 503 with Retry-After`)
  if (slowest > bounds.readMs) wrong.push(`a call for ${kind} took ${Math.round(slowest)} ms`)
  if (goesOn === true && failed.length > 0 && (awayMs === 0 || failedForMs > awayMs)) {
    wrong.push(`${failed.length} calls for ${kind} of ${own.length} failed`)
  }
  if (goesOn === false && ok > 0) wrong.push(`${ok} calls for ${kind} succeeded: no outage`)
  return wrong
}

/** The readiness of each process late in the outage and after the recovery. */
function judgeReadiness(
  injected: InjectedOutage,
  probes: readonly Probe[],
  { truthMs }: OutageBounds,
): string[] {
  const { outage, inForceMs, endedMs, recoveredMs, calmUntilMs } = injected
  return SERVICE_NAMES.flatMap((name) => {
    const own = probes.filter((probe) => probe.name === name)
    const during = own.filter((probe) => probe.begunMs + probe.tookMs < endedMs)
    // In a short outage only the last probe counts.
    const lastMs = during.at(-1)?.begunMs ?? 0
    const fromMs = Math.min(inForceMs + truthMs, lastMs)
    const expected = outage.expected.ready[name]
    const wrongProbes = during.filter(
      ({ begunMs, ready }) => begunMs >= fromMs && expected !== null && ready !== expected,
    )
    const after = own.filter(({ begunMs, tookMs, ready }) => {
      return !ready && begunMs > recoveredMs + truthMs && begunMs + tookMs < calmUntilMs
    })
    const wrong: string[] = []
    if (wrongProbes.length > 0) {
      wrong.push(
        `${name} says ${describeProbe(wrongProbes[0]!)} ${seconds(wrongProbes[0]!.begunMs - inForceMs)} into`,
      )
    }
    if (after.length > 0) {
      const { why } = after[0]!
      wrong.push(`${name} is not ready ${truthMs / 1_000} s after the recovery: ${why}`)
    }
    return wrong
  })
}

/** The readiness of the edge, compared with its responses around that moment. */
function judgeIngest(
  { inForceMs, endedMs }: InjectedOutage,
  { calls, probes }: Seen,
  { truthMs }: OutageBounds,
): string[] {
  const submitted = calls.filter(({ kind }) => kind === 'submit')
  const wrongProbes = probes.filter(({ name, begunMs, ready }) => {
    if (name !== 'ingest' || begunMs < inForceMs + truthMs || begunMs > endedMs) return false
    const around = submitted.filter((call) => {
      return call.begunMs > begunMs - aroundMs && call.begunMs < begunMs + aroundMs
    })
    const took = around.filter(({ outcome }) => outcome === 'ok').length
    return around.length > 0 && took === (ready ? 0 : around.length)
  })
  const [wrong] = wrongProbes
  if (wrong === undefined) return []
  return [
    `ingest says ${describeProbe(wrong)} ${seconds(wrong.begunMs - inForceMs)} into, and responds otherwise`,
  ]
}

const describeProbe = ({ ready, why }: Probe) => (ready ? 'ready' : `not ready (${why})`)

/** When each process became unready, and ready again after the recovery; null for never. */
export function toReadinessTimes(injected: InjectedOutage, probes: readonly Probe[]) {
  const { inForceMs, endedMs, recoveredMs } = injected
  return SERVICE_NAMES.map((name) => {
    const own = probes.filter((probe) => probe.name === name)
    const down = own.find(
      ({ ready, begunMs }) => !ready && begunMs > inForceMs && begunMs < endedMs,
    )
    const lastDown = own.findLast(
      ({ ready, begunMs }) => !ready && begunMs > endedMs && begunMs < recoveredMs + 10_000,
    )
    return {
      name,
      downMs: down === undefined ? null : down.begunMs + down.tookMs - inForceMs,
      upMs: lastDown === undefined ? null : Math.max(0, lastDown.begunMs - recoveredMs),
    }
  })
}

/** @returns the broken guarantees about data */
export function judgeFindings(findings: OutageFindings): string[] {
  const promises: [string, readonly string[]][] = [
    ['accepted events that are not stored', findings.notStored],
    ['events stored twice', findings.storedTwice],
    ['events that were not sent', findings.neverSent],
    ['devices with a wrong history', findings.wrongHistory],
    ['sessions without their alert', findings.withoutAlert],
    ['sessions with two alerts', findings.withTwoAlerts],
    ['alerts without a webhook', findings.notDelivered],
    ['alerts sent in different bytes', findings.otherBytes],
  ]
  const broken = promises
    .filter(([, found]) => found.length > 0)
    .map(([what, found]) => `${what}: ${found.length}, such as ${found[0]}`)
  if (findings.seqGaps > 0) broken.push(`gaps in seq: ${findings.seqGaps}`)
  if (findings.accepted === 0) broken.push('nothing was accepted')
  return broken
}
