/**
 * `npm run faults -- isolation [--calls 50000] [--seed S]`: five tenants with the same device,
 * session and user ids, and calls over every route that shows anything of a tenant, with every
 * filter and cursor, with its own ids and with those of the others. Prints counts by route; ends
 * with status 1 when an answer had anything of another tenant in it, was not what the model says,
 * or told a foreign id from one that nobody has.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { startIsolationWorld } from './rig.ts'
import { drillIsolation, type IsolationResult } from './run-isolation.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      calls: { type: 'string', default: '50000' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const [calls, seed] = [Number(values.calls), Number(values.seed)]
  say(`${calls} calls, --seed ${seed}`)
  const startedMs = performance.now()
  const world = await startIsolationWorld(seed)
  try {
    let said = 0
    const onProgress = (done: number) => {
      if (done < said + 10_000) return
      said = done
      say(`  ${done} after ${Math.round((performance.now() - startedMs) / 1_000)} s`)
    }
    const result = await drillIsolation(world, { calls, seed, onProgress })
    report(result)
    if (countFaults(result) > 0) process.exitCode = 1
  } finally {
    await world.close()
  }
}

/** Everything that must be 0. */
export function countFaults({ routes, departures, foreignWebhooks }: IsolationResult): number {
  const tallies = [...routes.values()]
  const sum = tallies.reduce((all, one) => all + one.foreign + one.told + one.wrong, 0)
  return sum + departures.length + foreignWebhooks
}

function report(result: IsolationResult): void {
  const { routes, examples, departures } = result
  const width = Math.max(...[...routes.keys()].map((name) => name.length))
  say(`${'route'.padEnd(width)}  calls   rows foreign probes told wrong`)
  for (const [name, one] of [...routes].sort()) {
    const counts = [one.calls, one.rows, one.foreign, one.probes, one.told, one.wrong]
    say(`${name.padEnd(width)} ${counts.map((count) => String(count).padStart(6)).join(' ')}`)
  }
  const sum = (of: 'rows' | 'foreign' | 'probes' | 'told' | 'wrong') =>
    [...routes.values()].reduce((all, one) => all + one[of], 0)
  say(`calls: ${result.calls} over ${routes.size} routes; rows looked at: ${sum('rows')}`)
  say(`foreign rows: ${sum('foreign')}`)
  say(`foreign ids and cursors asked for: ${sum('probes')}; told from unknown: ${sum('told')}`)
  say(`answers that are not the model's: ${sum('wrong')}`)
  say(`webhook requests: ${result.webhooks}; with anything foreign: ${result.foreignWebhooks}`)
  say(`after an erasure and a suspension, otherwise than before: ${departures.length}`)
  for (const example of [...examples, ...departures.slice(0, 10)]) say(`  ${example.slice(0, 900)}`)
}
