/** What the calls and probes of an outage, and what was read back, say of the promises. */
import { SERVICE_NAMES } from '../../../deploy/local/stack/settings.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { Call, CallKind } from './load.ts'
import type { OutageFindings } from './read-back.ts'
import type { Probe } from './readiness-probes.ts'
import { type OutagesResult, type Suffered, truthWithinMs } from './run-outages.ts'

type Seen = Pick<OutagesResult, 'calls' | 'probes'>

/** Whatever happens, an answer to a submission is there. */
const refusedWithinMs = 2_500
/**
 * Once an edge knows: its lease has run out, or a publish has failed. A broker that comes back and
 * fails again is found out anew, by a few.
 */
const knownAfterMs = 3_000
const refusedOnceKnownMs = 300
/** Readiness is compared with what was answered this long before and after. */
const aroundMs = 1_500
/** An acknowledgement that was written before is read by then. */
const onItsWayMs = 200
/** The api asks a silent database for as long as this. */
const readWithinMs = 4_000
/** A ClickHouse that is started again, for a part that a full disk broke, is away for this long. */
const startsWithinMs = 3_000

const ended = ({ begunMs, tookMs }: Call) => begunMs + tookMs

/** The submissions that were begun, and ended, during an outage. */
export function submissionsOf({ begunMs, endedMs }: Suffered, calls: readonly Call[]): Call[] {
  return calls.filter(
    (call) => call.kind === 'submit' && call.begunMs >= begunMs && ended(call) <= endedMs,
  )
}

/** @returns the promises that an outage broke, in words */
export function judgeOutage(suffered: Suffered, { calls, probes }: Seen): string[] {
  const { outage } = suffered
  const wrong = [
    ...judgeIntake(suffered, submissionsOf(suffered, calls)),
    ...judgeReads('alerts', outage.expected.alerts, suffered, calls),
    ...judgeReads('device', outage.expected.device, suffered, calls),
    ...judgeReadiness(suffered, probes),
    ...judgeIngest(suffered, { calls, probes }),
    ...(suffered.drained ? [] : ['the backlog was not worked off in time']),
    ...(suffered.readyAgain ? [] : ['not all were ready within 5 s of the recovery']),
  ]
  return wrong.map((line) => `${outage.name}: ${line}`)
}

function judgeIntake(suffered: Suffered, own: readonly Call[]): string[] {
  const { outage, inForceMs } = suffered
  const refused = own.filter(({ outcome }) => outcome === 'refused')
  const lost = own.filter(({ outcome }) => outcome === 'unknown').length
  const wrong: string[] = []
  const broken = (isBroken: boolean, what: string) => {
    if (isBroken) wrong.push(what)
  }
  broken(lost > 0, `${lost} submissions were never answered`)
  if (outage.expected.intake === 'never') {
    const taken = own.filter((call) => {
      return call.outcome === 'ok' && call.begunMs > inForceMs + onItsWayMs
    }).length
    broken(taken > 0, `${taken} were answered with a 200 that nobody can have acknowledged`)
  }
  if (outage.expected.intake === true) {
    broken(refused.length > 0, `${refused.length} submissions refused, though intake is to go on`)
    return wrong
  }
  const slowest = Math.max(0, ...refused.map(({ tookMs }) => tookMs))
  const known = refused.filter(({ begunMs }) => begunMs > inForceMs + knownAfterMs)
  const knownMs = percentile(
    known.map(({ tookMs }) => tookMs),
    0.95,
  )
  const bare = refused.filter(({ status, retryAfter }) => status !== 503 || !retryAfter).length
  broken(refused.length === 0, 'nothing was refused: the outage did not bite')
  broken(slowest > refusedWithinMs, `a refusal took ${Math.round(slowest)} ms`)
  broken(knownMs > refusedOnceKnownMs, `refusals took ${Math.round(knownMs)} ms (p95) once known`)
  broken(bare > 0, `${bare} refusals were no 503 with Retry-After`)
  return wrong
}

function judgeReads(
  kind: CallKind,
  goesOn: boolean | null,
  { inForceMs, endedMs, restarts }: Suffered,
  calls: readonly Call[],
): string[] {
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
  if (slowest > readWithinMs) wrong.push(`a call for ${kind} took ${Math.round(slowest)} ms`)
  if (goesOn === true && failed.length > 0 && (awayMs === 0 || failedForMs > awayMs)) {
    wrong.push(`${failed.length} calls for ${kind} of ${own.length} failed`)
  }
  if (goesOn === false && ok > 0) wrong.push(`${ok} calls for ${kind} were answered: no outage`)
  return wrong
}

/** Each process, towards the end of the outage and after the recovery. */
function judgeReadiness(suffered: Suffered, probes: readonly Probe[]): string[] {
  const { outage, inForceMs, endedMs, recoveredMs, calmUntilMs } = suffered
  return SERVICE_NAMES.flatMap((name) => {
    const own = probes.filter((probe) => probe.name === name)
    const during = own.filter((probe) => probe.begunMs + probe.tookMs < endedMs)
    // In a short outage the last word counts.
    const lastMs = during.at(-1)?.begunMs ?? 0
    const fromMs = Math.min(inForceMs + truthWithinMs, lastMs)
    const expected = outage.expected.ready[name]
    const lies = during.filter(
      ({ begunMs, ready }) => begunMs >= fromMs && expected !== null && ready !== expected,
    )
    const after = own.filter(({ begunMs, tookMs, ready }) => {
      return !ready && begunMs > recoveredMs + truthWithinMs && begunMs + tookMs < calmUntilMs
    })
    const wrong: string[] = []
    if (lies.length > 0) {
      wrong.push(`${name} says ${toWord(lies[0]!)} ${toSeconds(lies[0]!.begunMs - inForceMs)} into`)
    }
    if (after.length > 0) {
      const { why } = after[0]!
      wrong.push(`${name} is not ready ${truthWithinMs / 1_000} s after the recovery: ${why}`)
    }
    return wrong
  })
}

/** What an edge says of itself, against what it did around that moment. */
function judgeIngest({ inForceMs, endedMs }: Suffered, { calls, probes }: Seen): string[] {
  const submitted = calls.filter(({ kind }) => kind === 'submit')
  const lies = probes.filter(({ name, begunMs, ready }) => {
    if (name !== 'ingest' || begunMs < inForceMs + truthWithinMs || begunMs > endedMs) return false
    const around = submitted.filter((call) => {
      return call.begunMs > begunMs - aroundMs && call.begunMs < begunMs + aroundMs
    })
    const took = around.filter(({ outcome }) => outcome === 'ok').length
    return around.length > 0 && took === (ready ? 0 : around.length)
  })
  const [lie] = lies
  if (lie === undefined) return []
  return [
    `ingest says ${toWord(lie)} ${toSeconds(lie.begunMs - inForceMs)} into, and acts otherwise`,
  ]
}

const toWord = ({ ready, why }: Probe) => (ready ? 'ready' : `not ready (${why})`)
const toSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/** How long each process took to say that it is not ready, and that it is again; null for never. */
export function toTruths(suffered: Suffered, probes: readonly Probe[]) {
  const { inForceMs, endedMs, recoveredMs } = suffered
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

/** @returns the promises about data that were broken, in words */
export function judgeFindings(findings: OutageFindings): string[] {
  const promises: [string, readonly string[]][] = [
    ['accepted events that are not stored', findings.notStored],
    ['events stored twice', findings.storedTwice],
    ['events that nobody sent', findings.neverSent],
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
