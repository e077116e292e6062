/**
 * `npm run faults -- NAME [options]`: runs one of the fault drills, each a module that prints its
 * own report and sets the exit status when a promise was broken.
 */
type Drill = { run: (args: string[]) => Promise<void> }

const drills: Record<string, () => Promise<Drill>> = {
  analysts: () => import('./analysts.ts'),
  rotations: () => import('./rotations.ts'),
  projection: () => import('./projection.ts'),
  deliveries: () => import('./deliveries.ts'),
  hostile: () => import('./hostile-receivers.ts'),
  addresses: () => import('./forbidden-addresses.ts'),
  ledger: () => import('./ledger.ts'),
}

const [name = '', ...args] = process.argv.slice(2)
const load = drills[name]
if (load === undefined) {
  const known = Object.keys(drills).join(', ')
  process.stderr.write(`There is no fault drill "${name}"; there are: ${known}\n`)
  process.exit(1)
}
await (await load()).run(args)
