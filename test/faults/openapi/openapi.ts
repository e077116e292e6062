/**
 * `npm run faults -- openapi [--calls 20000] [--seed S]`: valid and invalid calls of every
 * operation, generated from both OpenAPI documents; every response is compared with its document.
 * Exits with 1 when a response is undocumented, is a 500, or accepts an invalid call, and when too
 * few valid calls succeed.
 */
import { print, randomSeed, readOptions } from '../support/drill.ts'
import { startOpenapiRig } from './rig.ts'
import { drillOpenapi, type OpenapiFindings } from './run-openapi.ts'

/** The minimum share of an operation's valid calls that must succeed for it to count as tested. */
const succeededShareMin = 0.1
/** With fewer valid calls than this, one success is enough. */
const validCallsFew = 40

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { calls, seed } = readOptions(args, { calls: 20_000, seed: randomSeed() })
  print(`${calls} calls, --seed ${seed}`)
  const startedMs = performance.now()
  const rig = await startOpenapiRig()
  try {
    const onProgress = (done: number) => {
      if (done % 5_000 !== 0) return
      print(`  ${done} after ${Math.round((performance.now() - startedMs) / 1_000)} s`)
    }
    const findings = await drillOpenapi(rig, { calls, seed, onProgress })
    report(findings)
    if (findings.faults.size > 0 || findUntested(findings).length > 0) process.exitCode = 1
  } finally {
    await rig.close()
  }
}

/** Operations with too few successful valid calls. */
export function findUntested({ operations }: OpenapiFindings): string[] {
  return operations
    .filter(({ valid, succeeded }) => {
      return succeeded < (valid < validCallsFew ? 1 : valid * succeededShareMin)
    })
    .map(({ name }) => name)
}

function report(findings: OpenapiFindings): void {
  const { operations, faults } = findings
  const width = Math.max(...operations.map(({ name }) => name.length))
  print('operation, calls, valid calls that succeeded, mean ms, responses by status')
  for (const one of operations) {
    const statuses = Object.entries(one.statuses).map(([status, count]) => `${status}:${count}`)
    const mean = (one.tookMs / Math.max(1, one.calls)).toFixed(1)
    const share = `${one.succeeded}/${one.valid}`
    print(
      `  ${one.name.padEnd(width)} ${String(one.calls).padStart(5)} ${share.padStart(9)}` +
        ` ${mean.padStart(6)}  ${statuses.join(' ')}`,
    )
  }
  const kinds = Object.entries(findings.kinds).map(([kind, count]) => `${kind} ${count}`)
  print(`calls: ${findings.calls} (${kinds.join(', ')})`)
  const of = (kind: string) =>
    [...faults.values()].filter((one) => one.kind === kind).reduce((sum, one) => sum + one.count, 0)
  print(`responses of 500: ${of('server_error')}`)
  print(`undocumented statuses: ${of('undocumented_status')}`)
  const mismatches = ['undocumented_content_type', 'body_mismatch', 'header_missing']
  print(
    `mismatches: ${[...mismatches, 'header_mismatch'].reduce((sum, kind) => sum + of(kind), 0)}`,
  )
  print(`secured operations that ignored a missing or wrong key: ${of('ignored_auth')}`)
  print(`bad input accepted or wrongly refused: ${of('bad_input_accepted') + of('not_understood')}`)
  for (const name of findUntested(findings)) print(`  too few valid calls succeeded: ${name}`)
  for (const { kind, operation, why, count, example } of [...faults.values()].slice(0, 60)) {
    print(`  ${kind} ×${count}, ${operation}: ${why}\n    ${example}`)
  }
}
