/**
 * `npm run bench [-- NAME... [OPTIONS]]`: runs the benchmarks, each a module that starts what it
 * needs and reports by `publishReport`. Every figure has a baseline measured in the same run.
 */
import { explainOptions } from '../faults/support/drill.ts'

type Benchmark = { run: (args: string[]) => void | Promise<void> }

const benchmarks: Record<string, () => Promise<Benchmark>> = {
  scoring: () => import('./history/scoring.ts'),
  unverified: () => import('./edge/unverified.ts'),
  'before-signature': () => import('./edge/before-signature.ts'),
  edge: () => import('./edge/edge.ts'),
  drain: () => import('./drain/drain.ts'),
  inserts: () => import('./drain/inserts.ts'),
  'risk-features': () => import('./history/risk-features.ts'),
  shards: () => import('./history/shards.ts'),
  freshness: () => import('./freshness/freshness.ts'),
  'small-insert': () => import('./freshness/small-insert.ts'),
  scale: () => import('./scale/scale.ts'),
  cost: () => import('./cost/cost.ts'),
  history: () => import('./history/history.ts'),
  alerts: () => import('./alerts/alerts.ts'),
  delivery: () => import('./delivery/delivery.ts'),
  fairness: () => import('./delivery/fairness.ts'),
  backtest: () => import('./history/backtest.ts'),
  cookbook: () => import('./history/cookbook.ts'),
  console: () => import('./console/console.ts'),
}

const words = process.argv.slice(2)
const firstOption = words.findIndex((word) => word.startsWith('--'))
const names = firstOption === -1 ? words : words.slice(0, firstOption)
const options = firstOption === -1 ? [] : words.slice(firstOption)
for (const name of names.length > 0 ? names : Object.keys(benchmarks)) {
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
