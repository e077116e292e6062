/** The parts that every drill shares: its options, its printed lines and its exit status. */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { percentile } from '../../support/process/percentile.ts'

export const print = (line: string) => process.stdout.write(`${line}\n`)

/** The default of `--seed`: different in each run, always printed. */
export const randomSeed = (): number => randomInt(2 ** 31)

class OptionsError extends Error {}

/** Prints what is wrong with the options, without a stack. @throws any other error */
export function explainOptions(error: unknown): void {
  const code = String((error as NodeJS.ErrnoException).code)
  if (!(error instanceof OptionsError) && !code.startsWith('ERR_PARSE_ARGS')) throw error
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}

type Widened<Default> = Default extends number ? number : Default extends boolean ? boolean : string

/**
 * Parses `--name value` and `--flag`; the type of a default is the type of its option.
 * @throws on an unknown option, on a value that is not a number where the default is one, and on
 *   `--help`, with all options
 */
export function readOptions<const Defaults extends Record<string, number | string | boolean>>(
  args: string[],
  defaults: Defaults,
): { [Name in keyof Defaults]: Widened<Defaults[Name]> } {
  const options = Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [
      name,
      { type: typeof value === 'boolean' ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  if (args.includes('--help')) {
    const given = Object.entries(defaults).map(([name, value]) => `--${name} ${value}`)
    throw new OptionsError(`its options and their defaults: ${given.join(', ')}`)
  }
  const { values } = parseArgs({ args, options })
  const read = Object.entries(defaults).map(([name, value]) => {
    const given = values[name] ?? value
    if (typeof value !== 'number') return [name, given]
    if (!Number.isFinite(Number(given)))
      throw new OptionsError(`--${name} is not a number: ${given}`)
    return [name, Number(given)]
  })
  return Object.fromEntries(read) as { [Name in keyof Defaults]: Widened<Defaults[Name]> }
}

/** Prints the broken guarantees and sets the exit status. */
export function reportBroken(broken: readonly string[], held = 'every promise held'): void {
  for (const promise of broken) print(`BROKEN: ${promise}`)
  if (broken.length > 0) process.exitCode = 1
  else print(held)
}

/** `p50 4 ms, p99 9 ms, max 12 ms` */
export function describeTimes(tookMs: readonly number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((rank) => Math.round(percentile(tookMs, rank)))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`
}

/** `1.5 s` */
export const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
