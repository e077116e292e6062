/**
 * Runs model-based state machines over random histories that a seed repeats, and counts what
 * happened: a run without a lost acknowledgement or a race proves nothing about either.
 */
import fc from 'fast-check'

export type MachineOptions = { runs: number; seed: number }

export type MachineReport = {
  runs: number
  /** How often each thing happened, over all histories. */
  seen: Record<string, number>
}

/** Counts an effect. */
export type Note = (what: string, times?: number) => void

/**
 * Runs a property and adds up its counts.
 * @throws with the smallest counterexample, its seed and its path
 */
export async function runMachine<Value>(
  { runs, seed }: MachineOptions,
  arbitrary: fc.Arbitrary<Value>,
  history: (note: Note, value: Value) => Promise<void>,
): Promise<MachineReport> {
  const seen: Record<string, number> = {}
  const note: Note = (what, times = 1) => {
    seen[what] = (seen[what] ?? 0) + times
  }
  await fc.assert(
    fc.asyncProperty(arbitrary, (value) => history(note, value)),
    { numRuns: runs, seed },
  )
  return { runs, seen }
}

/** A broken guarantee: fast-check shrinks the history to the shortest one that breaks it. */
export function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}

/** Demands that two values are equal as JSON. */
export function demandEqual(actual: unknown, expected: unknown, what: string): void {
  const [got, want] = [JSON.stringify(actual), JSON.stringify(expected)]
  demand(got === want, `${what}: ${got}, and not ${want}`)
}

export type Command<History> = fc.AsyncCommand<object, History>
/** A history, which shrinks to the shortest one that still fails. */
export type Commands<History> = Iterable<Command<History>>

/**
 * A command. It does nothing when it is impossible in the current state.
 * @param name with its parameters, for a counterexample
 */
export function toCommand<History>(
  name: string,
  run: (history: History) => Promise<void> | void,
): Command<History> {
  return {
    check: () => true,
    run: async (_, history) => {
      await run(history)
    },
    toString: () => name,
  }
}

/** At most this number of commands, in any order. */
export function anyCommands<History>(
  kinds: readonly fc.Arbitrary<Command<History>>[],
  maxCommands: number,
): fc.Arbitrary<Commands<History>> {
  const arbitrary = fc.commands(kinds as never, { maxCommands, size: 'max' })
  return arbitrary as unknown as fc.Arbitrary<Commands<History>>
}

/** Runs commands one after another. */
export function runCommands<History>(history: History, commands: Commands<History>): Promise<void> {
  return fc.asyncModelRun(async () => ({ model: {}, real: history }), commands)
}

/**
 * Runs commands while the scheduler decides the order of all other work between and during them.
 */
export function raceCommands<History>(
  scheduler: fc.Scheduler,
  history: History,
  commands: Commands<History>,
): Promise<void> {
  return fc.scheduledModelRun(scheduler, async () => ({ model: {}, real: history }), commands)
}
