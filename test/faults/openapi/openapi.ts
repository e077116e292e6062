/**
 * `npm run faults -- openapi [--calls 20000] [--seed S]`: valid and invalid calls over every
 * operation of both OpenAPI documents, generated from the documents themselves; every answer is
 * held to what its document says. Prints counts by operation; ends with status 1 when an answer was
 * not as documented, was a 500, or let through what must be refused, and when valid calls did not
 * really succeed.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { startOpenapiWorld } from './rig.ts'
import { drillOpenapi, type OpenapiFindings } from './run-openapi.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/** The least share of an operation's valid calls that must succeed for it to have been tested. */
const succeededShareMin = 0.1
/** Of fewer valid calls than this, one is enough. */
const validCallsFew = 40

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      calls: { type: 'string', default: '20000' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const [calls, seed] = [Number(values.calls), Number(values.seed)]
  say(`${calls} calls, --seed ${seed}`)
  const startedMs = performance.now()
  const world = await startOpenapiWorld()
  try {
    const onProgress = (done: number) => {
      if (done % 5_000 !== 0) return
      say(`  ${done} after ${Math.round((performance.now() - startedMs) / 1_000)} s`)
    }
    const findings = await drillOpenapi(world, { calls, seed, onProgress })
    report(findings)
    if (findings.faults.size > 0 || findUntested(findings).length > 0) process.exitCode = 1
  } finally {
    await world.close()
  }
}

/** Operations whose valid calls hardly ever succeeded. */
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
  say('operation, calls, valid calls that succeeded, mean ms, answers by status')
  for (const one of operations) {
    const statuses = Object.entries(one.statuses).map(([status, count]) => `${status}:${count}`)
    const mean = (one.tookMs / Math.max(1, one.calls)).toFixed(1)
    const share = `${one.succeeded}/${one.valid}`
    say(
      `  ${one.name.padEnd(width)} ${String(one.calls).padStart(5)} ${share.padStart(9)}` +
        ` ${mean.padStart(6)}  ${statuses.join(' ')}`,
    )
  }
  const kinds = Object.entries(findings.kinds).map(([kind, count]) => `${kind} ${count}`)
  say(`calls: ${findings.calls} (${kinds.join(', ')})`)
  const of = (kind: string) =>
    [...faults.values()].filter((one) => one.kind === kind).reduce((sum, one) => sum + one.count, 0)
  say(`answers of 500: ${of('server_error')}`)
  say(`undocumented statuses: ${of('undocumented_status')}`)
  const mismatches = ['undocumented_content_type', 'body_mismatch', 'header_missing']
  say(`mismatches: ${[...mismatches, 'header_mismatch'].reduce((sum, kind) => sum + of(kind), 0)}`)
  say(`secured operations that ignored a missing or wrong key: ${of('ignored_auth')}`)
  say(`bad input accepted or misjudged: ${of('bad_input_accepted') + of('not_understood')}`)
  for (const name of findUntested(findings)) say(`  hardly any valid call succeeded: ${name}`)
  for (const { kind, operation, why, count, example } of [...faults.values()].slice(0, 60)) {
    say(`  ${kind} ×${count}, ${operation}: ${why}\n    ${example}`)
  }
}
