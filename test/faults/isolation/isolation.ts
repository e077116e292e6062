/**
 * `npm run faults -- isolation [--calls 50000] [--seed S]`: five tenants with the same device,
 * session and user ids call every route that returns tenant data, with every filter and cursor,
 * with their own ids and with those of the others. Exits with 1 when a response contains another
 * tenant's data, differs from the model, or distinguishes a foreign id from an unknown one.
 */
import { print, randomSeed, readOptions } from '../support/drill.ts'
import { startIsolationRig } from './rig.ts'
import { drillIsolation, type IsolationResult } from './run-isolation.ts'

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { calls, seed } = readOptions(args, { calls: 50_000, seed: randomSeed() })
  print(`${calls} calls, --seed ${seed}`)
  const startedMs = performance.now()
  const rig = await startIsolationRig(seed)
  try {
    let printed = 0
    const onProgress = (done: number) => {
      if (done < printed + 10_000) return
      printed = done
      print(`  ${done} after ${Math.round((performance.now() - startedMs) / 1_000)} s`)
    }
    const result = await drillIsolation(rig, { calls, seed, onProgress })
    report(result)
    if (countFaults(result) > 0) process.exitCode = 1
  } finally {
    await rig.close()
  }
}

/** Everything that must be 0. */
export function countFaults({ routes, differences, foreignWebhooks }: IsolationResult): number {
  const tallies = [...routes.values()]
  const sum = tallies.reduce((all, one) => all + one.foreign + one.leaks + one.wrong, 0)
  return sum + differences.length + foreignWebhooks
}

function report(result: IsolationResult): void {
  const { routes, examples, differences } = result
  const width = Math.max(...[...routes.keys()].map((name) => name.length))
  print(`${'route'.padEnd(width)}  calls   rows foreign probes leaks wrong`)
  for (const [name, one] of [...routes].sort()) {
    const counts = [one.calls, one.rows, one.foreign, one.probes, one.leaks, one.wrong]
    print(`${name.padEnd(width)} ${counts.map((count) => String(count).padStart(6)).join(' ')}`)
  }
  const sum = (of: 'rows' | 'foreign' | 'probes' | 'leaks' | 'wrong') =>
    [...routes.values()].reduce((all, one) => all + one[of], 0)
  print(`calls: ${result.calls} over ${routes.size} routes; rows looked at: ${sum('rows')}`)
  print(`foreign rows: ${sum('foreign')}`)
  print(
    `foreign ids and cursors tried: ${sum('probes')}; distinguishable from unknown ones: ${sum('leaks')}`,
  )
  print(`responses that differ from the model: ${sum('wrong')}`)
  print(`webhook requests: ${result.webhooks}; with anything foreign: ${result.foreignWebhooks}`)
  print(`differences after an erasure and a suspension: ${differences.length}`)
  for (const example of [...examples, ...differences.slice(0, 10)])
    print(`  ${example.slice(0, 900)}`)
}
