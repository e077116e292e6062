/**
 * `npm run bench [-- NAME...]`: runs the benchmarks, each a module that prints its own table. Every
 * figure stands beside a floor measured in the same run.
 */
const benchmarks: Record<string, () => Promise<{ run: () => void | Promise<void> }>> = {
  scoring: () => import('./scoring.ts'),
}

const names = process.argv.slice(2)
for (const name of names.length > 0 ? names : Object.keys(benchmarks)) {
  const load = benchmarks[name]
  if (load === undefined) {
    const known = Object.keys(benchmarks).join(', ')
    process.stderr.write(`There is no benchmark ${name}; there are: ${known}\n`)
    process.exit(1)
  }
  await (await load()).run()
}
