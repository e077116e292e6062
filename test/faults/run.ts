/**
 * `npm run faults -- NAME [options]` runs one drill, a module that prints its report and sets the
 * exit status. `npm run faults` runs those of `withinAnHour` in sequence, each in its own process.
 */
import { fileURLToPath } from 'node:url'
import { runParts } from '../support/process/run-parts.ts'
import { explainOptions, print, seconds } from './support/drill.ts'

type Drill = { run: (args: string[]) => Promise<void> }

const drills: Record<string, () => Promise<Drill>> = {
  analysts: () => import('./analysts/analysts.ts'),
  rotations: () => import('./rotations/rotations.ts'),
  restore: () => import('./restore/restore.ts'),
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
  'put-back': () => import('./put-back/put-back.ts'),
  standby: () => import('./standby/standby.ts'),
  rolling: () => import('./rolling/rolling.ts'),
  hangs: () => import('./hangs/hangs.ts'),
  image: () => import('./image/image.ts'),
  attestation: () => import('./attestation/attestation.ts'),
}

/**
 * About an hour in all; some drills are shortened. `restore` (some forty minutes) and `soak` would
 * double it. The others are run by name after a change of what they are about: their short forms in
 * `npm test` inject the same faults.
 */
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

function runAll(): void {
  const file = fileURLToPath(import.meta.url)
  const results = [...runParts('npm run faults --', file, withinAnHour)]
  for (const { name, ok, tookMs } of results) {
    print(`${ok ? 'held  ' : 'BROKEN'}  ${name} (${seconds(tookMs)})`)
  }
  if (results.some(({ ok }) => !ok)) process.exitCode = 1
}

const [name, ...args] = process.argv.slice(2)
if (name === undefined) runAll()
else {
  const load = drills[name]
  if (load === undefined) {
    const names = Object.keys(drills).join(', ')
    process.stderr.write(`There is no fault drill "${name}"; there are: ${names}\n`)
    process.exit(1)
  }
  const drill = await load()
  await drill.run(args).catch(explainOptions)
}
