/**
 * `npm run bench -- NAME [OPTIONS]` runs one benchmark, a module that starts what it needs and
 * reports by `publishReport`. Every figure has a baseline measured in the same run. `npm run bench`
 * runs those of `together` in sequence, each in its own process, and lists what misses its target.
 * It exits with 1 when a benchmark is void; a figure that misses its target is a result.
 */
import { fileURLToPath } from 'node:url'
import { explainOptions, print, seconds } from '../faults/support/drill.ts'
import { runParts } from '../support/process/run-parts.ts'
import { readMisses } from './report.ts'

type Benchmark = { run: (args: string[]) => void | Promise<void> }

const benchmarks: Record<string, () => Promise<Benchmark>> = {
  presets: () => import('./history/presets.ts'),
  outcomes: () => import('./outcomes/outcomes.ts'),
  'before-signature': () => import('./edge/before-signature.ts'),
  verdict: () => import('./edge/verdict.ts'),
  unsigned: () => import('./unsigned/unsigned.ts'),
  edge: () => import('./edge/edge.ts'),
  drain: () => import('./drain/drain.ts'),
  inserts: () => import('./drain/inserts.ts'),
  'risk-features': () => import('./history/risk-features.ts'),
  shards: () => import('./history/shards.ts'),
  freshness: () => import('./freshness/freshness.ts'),
  scale: () => import('./scale/scale.ts'),
  cost: () => import('./cost/cost.ts'),
  history: () => import('./history/history.ts'),
  alerts: () => import('./alerts/alerts.ts'),
  delivery: () => import('./delivery/delivery.ts'),
  fairness: () => import('./delivery/fairness.ts'),
  backtest: () => import('./history/backtest.ts'),
  network: () => import('./network/network.ts'),
  travel: () => import('./network/travel.ts'),
  'network-rules': () => import('./network/network-rules.ts'),
  identity: () => import('./identity/identity.ts'),
  console: () => import('./console/console.ts'),
  pages: () => import('./console/pages.ts'),
  'suggest-stored': () => import('./outcomes/suggest-stored.ts'),
}

/**
 * Every benchmark, some with fewer rounds and smaller sizes than by default; `freshness` at three
 * rates. The longest, which fill tables of millions of rows, come last.
 */
const together: [name: string, ...options: string[]][] = [
  ['presets'],
  ['outcomes'],
  ['network'],
  ['travel'],
  ['network-rules'],
  ['identity', '--phones', '20000'],
  ['before-signature'],
  ['verdict'],
  ['unsigned'],
  ['edge', '--rounds', '2', '--seconds', '3'],
  ['freshness', '--rate', '100', '--memory-minutes', '0'],
  ['freshness', '--rate', '500', '--memory-minutes', '0'],
  ['freshness', '--rate', '2000'],
  ['cost', '--seconds', '30'],
  ['scale'],
  ['drain', '--rounds', '1'],
  ['inserts', '--rounds', '1'],
  ['shards'],
  ['delivery', '--rounds', '2'],
  ['fairness', '--rounds', '1'],
  ['risk-features', '--rows', '1000000,10000000'],
  ['history', '--sizes', '100000,10000000', '--rounds', '1'],
  ['alerts', '--rounds', '1'],
  ['backtest', '--pairs', '100000'],
  ['pages', '--events', '1000000', '--rounds', '3'],
  ['suggest-stored'],
  ['console', '--rounds', '2', '--requests', '10'],
]

function runTogether(): void {
  const file = fileURLToPath(import.meta.url)
  const results = [...runParts('npm run bench --', file, together)].map((part) => ({
    ...part,
    misses: readMisses(part.startedAt, part.tookMs),
  }))
  for (const { name, ok, tookMs, misses } of results) {
    print(`${ok ? 'measured' : 'VOID    '}  ${name} (${seconds(tookMs)})`)
    for (const miss of misses) print(`            misses: ${miss}`)
  }
  if (results.some(({ ok }) => !ok)) process.exitCode = 1
}

const [name, ...options] = process.argv.slice(2)
if (name === undefined) runTogether()
else {
  const load = benchmarks[name]
  if (load === undefined) {
    const known = Object.keys(benchmarks).join(', ')
    process.stderr.write(`There is no benchmark ${name}; there are: ${known}\n`)
    process.exit(1)
  }
  const benchmark = await load()
  try {
    await benchmark.run(options)
  } catch (error) {
    explainOptions(error)
  }
}
