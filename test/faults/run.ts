/**
 * `npm run faults -- NAME [options]` runs one drill: a module that prints its report and sets the
 * exit status, or test files that are longer with these options. `npm run faults` runs those of
 * `withinAnHour` in sequence, each in its own process.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runParts } from '../support/process/run-parts.ts'
import { explainOptions, print, randomSeed, seconds } from './support/drill.ts'

type Drill = { run: (args: string[]) => Promise<void> }

const drills: Record<string, () => Promise<Drill>> = {
  restore: () => import('./restore/restore.ts'),
  isolation: () => import('./isolation/isolation.ts'),
  reconciliation: () => import('./reconciliation/reconciliation.ts'),
  stops: () => import('./stops/stops.ts'),
  cluster: () => import('./cluster/cluster.ts'),
  'grow-cluster': () => import('./grow-cluster/grow-cluster.ts'),
  outages: () => import('./outages/outages.ts'),
  'small-stream': () => import('./small-stream/small-stream.ts'),
  starvation: () => import('./starvation/starvation.ts'),
  neighbours: () => import('./neighbours/neighbours.ts'),
  power: () => import('./power/power.ts'),
  kills: () => import('./kills/kills.ts'),
  writes: () => import('./writes/writes.ts'),
  soak: () => import('./soak/soak.ts'),
  standby: () => import('./standby/standby.ts'),
  rolling: () => import('./rolling/rolling.ts'),
  hangs: () => import('./hangs/hangs.ts'),
  image: () => import('./image/image.ts'),
  overload: () => import('./overload/overload.ts'),
}

/** Drills that are tests: the same code, with more rounds (`drill-options.ts`). */
const tests: Record<string, string[]> = {
  analysts: ['test/integration/analytics/analysts.test.ts'],
  attestation: ['test/unit/attestation/mutations.test.ts'],
  deliveries: ['test/long/deliveries/delivery-kills.test.ts'],
  machines: ['test/unit/faults/machines.test.ts', 'test/long/faults/machines.test.ts'],
  openapi: ['test/integration/api/openapi-conformance.test.ts'],
  rotations: ['test/integration/tenants/rotation-under-load.test.ts'],
}

/**
 * About an hour in all; some drills are shortened. `restore` and `soak` take longer. The
 * others are run by name after a change of what they are about: their short forms in `npm test`
 * inject the same faults.
 */
const withinAnHour: [name: string, ...options: string[]][] = [
  ['kills'],
  ['writes', '--sample', '30', '--together', '8', '--rate', '250'],
  ['outages', '--scale', '0.5'],
  ['power'],
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

/** Runs test files as a drill; all of them take their seed from `SEED`. */
function runTests(files: readonly string[], args: readonly string[]): void {
  const at = args.indexOf('--seed')
  const seed = at === -1 ? String(randomSeed()) : (args[at + 1] ?? '')
  const options = at === -1 ? args : args.toSpliced(at, 2)
  print(`--seed ${seed}`)
  const words = ['run', '--reporter=verbose', '--disable-console-intercept', '--testTimeout=0']
  const { status } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', ...words, ...files],
    { stdio: 'inherit', env: { ...process.env, SEED: seed, DRILL: JSON.stringify(options) } },
  )
  if (status !== 0) process.exitCode = 1
}

const [name, ...args] = process.argv.slice(2)
if (name === undefined) runAll()
else if (tests[name] !== undefined) runTests(tests[name], args)
else {
  const load = drills[name]
  if (load === undefined) {
    const names = [...Object.keys(drills), ...Object.keys(tests)].sort().join(', ')
    process.stderr.write(`There is no fault drill "${name}"; there are: ${names}\n`)
    process.exit(1)
  }
  const drill = await load()
  await drill.run(args).catch(explainOptions)
}
