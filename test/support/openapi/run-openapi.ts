/** Runs the drill: calls of every operation of both documents, and the findings by operation. */
import fc from 'fast-check'
import { type CallKind, callsTo, kinds, type PlannedCall } from './calls.ts'
import { type Fault, findFaults } from './check-answer.ts'
import { type Operation, readOperations } from './operations.ts'
import type { OpenapiRig } from './rig.ts'

export type OperationTally = {
  name: string
  calls: number
  valid: number
  /** The valid calls that were answered with a 2xx. */
  succeeded: number
  statuses: Record<string, number>
  tookMs: number
}

export type OpenapiFindings = {
  calls: number
  operations: OperationTally[]
  kinds: Record<CallKind, number>
  /** By fault and operation, each with one example. */
  faults: Map<string, Fault & { operation: string; count: number; example: string }>
}

/** Operations that wait for every edge, rewrite tables or read the whole history get fewer calls. */
const slow = new RegExp(
  [
    '^POST .*(/rotate|/suspend|tenant_id}/resume|/erasures|/backtest|/suggestion|/rewrap|v1/tenants)$',
    '^PUT .*/policy$',
    '^(POST|DELETE) .*/analysts',
    '^GET .*/(ledger|reconciliation|comparison|explanation|unknown-signals|rule-performance|attestation-coverage)$',
    // Rare, so that the webhook stays active for the other operations.
    '^(DELETE .*/webhook|POST .*/webhook/pause)$',
  ].join('|'),
)
const slowShare = 0.12
/** Of each operation, whatever chance makes of the others: half of these succeed. */
const validLeast = 3

const callers = 12

export type DrillOptions = {
  calls: number
  seed: number
  /** The minimum number of calls of every operation. */
  callsLeast: number
}

/** The same seed makes the same calls in the same order. */
export async function drillOpenapi(
  rig: OpenapiRig,
  { calls, seed, callsLeast }: DrillOptions,
): Promise<OpenapiFindings> {
  const operations = [
    ...readOperations(rig.documents.api, 'api'),
    ...readOperations(rig.documents.admin, 'admin'),
  ]
  const plans = toPlans(operations, rig, { calls, seed, callsLeast })
  const findings: OpenapiFindings = {
    calls: 0,
    operations: operations.map(({ name }) => ({
      name,
      calls: 0,
      valid: 0,
      succeeded: 0,
      statuses: {},
      tookMs: 0,
    })),
    kinds: Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<CallKind, number>,
    faults: new Map(),
  }
  let next = 0
  const sendPlans = async (): Promise<void> => {
    for (let at = next++; at < plans.length; at = next++) {
      const planned = plans[at]!
      const answer = await rig.send(planned.operation, planned.call)
      record(findings, planned, answer.status, answer.tookMs)
      for (const fault of findFaults(planned, answer)) note(findings, planned, fault, answer.text)
    }
  }
  await Promise.all(Array.from({ length: callers }, sendPlans))
  return findings
}

function toPlans(
  operations: Operation[],
  { credentials }: OpenapiRig,
  { calls, seed, callsLeast }: { calls: number; seed: number; callsLeast: number },
): PlannedCall[] {
  const weightOf = ({ name }: Operation) => (slow.test(name) ? slowShare : 1)
  const whole = operations.reduce((sum, one) => sum + weightOf(one), 0)
  const plans = operations.flatMap((operation, at) => {
    const weight = weightOf(operation)
    const least = weight < 1 ? Math.ceil(callsLeast * (3 / 4)) : callsLeast
    const numRuns = Math.max(least, Math.ceil((calls * weight) / whole))
    const valid = Math.min(validLeast, numRuns)
    const sample = (which: 'valid' | 'any', calls: number, more: number) =>
      fc.sample(callsTo(operation, credentials, which), { numRuns: calls, seed: seed + at + more })
    return [...sample('valid', valid, 0), ...sample('any', numRuns - valid, 1_000)]
  })
  // One order for all of them, by the seed.
  const keys = fc.sample(fc.nat(2 ** 30), { numRuns: plans.length, seed })
  const keyed = plans.map((plan, at) => ({ plan, key: keys[at]! }))
  return keyed.sort((a, b) => a.key - b.key).map(({ plan }) => plan)
}

function record(
  findings: OpenapiFindings,
  { operation, kind }: PlannedCall,
  status: number,
  tookMs: number,
): void {
  const tally = findings.operations.find(({ name }) => name === operation.name)!
  findings.calls++
  findings.kinds[kind]++
  tally.calls++
  tally.tookMs += tookMs
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1
  if (kind !== 'valid') return
  tally.valid++
  if ((status >= 200 && status < 300) || status === 304) tally.succeeded++
}

function note(
  { faults }: OpenapiFindings,
  { operation, kind, call }: PlannedCall,
  fault: Fault,
  text: string,
): void {
  const key = `${fault.kind} ${operation.name} ${fault.why.slice(0, 60)}`
  const { path, body = '', method } = call
  const sent = `${method} ${path.slice(0, 200)} ${String(body).slice(0, 200)}`
  const present = faults.get(key) ?? {
    ...fault,
    operation: operation.name,
    count: 0,
    example: `${kind}: ${sent} -> ${text.slice(0, 300)}`,
  }
  faults.set(key, { ...present, count: present.count + 1 })
}
