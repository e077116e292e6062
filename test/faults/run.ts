/**
 * `npm run faults -- NAME [options]`: runs one of the fault drills, each a module that prints its
 * own report and sets the exit status when a promise was broken. `npm run faults` alone runs those
 * of `withinAnHour`, one after another, each in a process of its own.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

type Drill = { run: (args: string[]) => Promise<void> }

const drills: Record<string, () => Promise<Drill>> = {
  analysts: () => import('./analysts/analysts.ts'),
  rotations: () => import('./rotations/rotations.ts'),
  projection: () => import('./projection/projection.ts'),
  deliveries: () => import('./deliveries/deliveries.ts'),
  hostile: () => import('./hostile/hostile.ts'),
  addresses: () => import('./addresses/addresses.ts'),
  reconciliation: () => import('./reconciliation/reconciliation.ts'),
  isolation: () => import('./isolation/isolation.ts'),
  openapi: () => import('./openapi/openapi.ts'),
  cluster: () => import('./cluster/cluster.ts'),
  machines: () => import('./machines/machines.ts'),
  'edge-input': () => import('./edge-input/edge-input.ts'),
  stops: () => import('./stops/stops.ts'),
  outages: () => import('./outages/outages.ts'),
  power: () => import('./power/power.ts'),
  kills: () => import('./kills/kills.ts'),
  writes: () => import('./writes/writes.ts'),
  soak: () => import('./soak/soak.ts'),
  starvation: () => import('./starvation/starvation.ts'),
  'small-stream': () => import('./small-stream/small-stream.ts'),
}

/** What fits into an hour, with the sizes that make it fit where the whole does not. */
const withinAnHour: [name: string, ...options: string[]][] = [
  ['kills'],
  ['writes', '--sample', '30', '--together', '8', '--rate', '250'],
  ['outages', '--scale', '0.5'],
  ['power'],
  ['edge-input'],
  ['isolation'],
  ['openapi'],
  ['machines', '--runs', '300'],
  ['stops', '--each', '10'],
  ['cluster', '--seconds', '140'],
  ['starvation', '--minutes', '3'],
  ['small-stream', '--minutes', '5', '--mb', '16'],
]

const say = (line: string) => process.stdout.write(`${line}\n`)

function runAll(): void {
  const results = withinAnHour.map(([drill, ...options]) => {
    say(`\n=== npm run faults -- ${[drill, ...options].join(' ')}`)
    const startedMs = performance.now()
    const file = fileURLToPath(import.meta.url)
    const { status } = spawnSync(process.execPath, [file, drill, ...options], { stdio: 'inherit' })
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    return { drill, kept: status === 0, seconds }
  })
  say('')
  for (const { drill, kept, seconds } of results) {
    say(`${kept ? 'kept  ' : 'BROKEN'}  ${drill} (${seconds} s)`)
  }
  if (results.some(({ kept }) => !kept)) process.exitCode = 1
}

const [name, ...args] = process.argv.slice(2)
if (name === undefined) runAll()
else {
  const load = drills[name]
  if (load === undefined) {
    const known = Object.keys(drills).join(', ')
    process.stderr.write(`There is no fault drill "${name}"; there are: ${known}\n`)
    process.exit(1)
  }
  await (await load()).run(args)
}
