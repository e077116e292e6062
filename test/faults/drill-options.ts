/**
 * Tests that are drills too: short in `npm test`, and as long as wanted in `npm run faults -- NAME`,
 * which passes its command line in `DRILL` and its seed in `SEED`.
 */
import { print, readOptions } from './support/drill.ts'

const args = process.env.DRILL === undefined ? null : (JSON.parse(process.env.DRILL) as string[])

export const isDrill = args !== null

/** For a test that is a drill: a drill may take hours, a test only hangs. */
export const drillLimitMs = isDrill ? 24 * 3_600_000 : 1_200_000

type Numbers<Name extends string> = Record<Name, number>

/**
 * @param short in tests
 * @param long in a drill, unless its command line has others
 */
export function drillOptions<Name extends string>(
  short: Numbers<NoInfer<Name>>,
  long: Numbers<Name>,
): Numbers<Name> {
  return args === null ? short : (readOptions(args, long) as Numbers<Name>)
}

/** Prints what a drill injected and found; a test prints nothing. */
function tell(line: string): void {
  if (isDrill) print(line)
}

/** Prints how often each thing happened. */
export function tellCounts(what: string, counts: Partial<Record<string, number>>): void {
  const texts = Object.entries(counts).map(([name, times]) => `${name} ${times}`)
  tell(`${what}: ${texts.join(', ') || 'none'}`)
}
