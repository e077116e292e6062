/** Steps of a move on servers that are busy, or that choose a leader at this moment. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../../context.ts'

/** An election, or a server that restarts, takes less. */
const failingMaxMs = 120_000
const retryMs = 500

/**
 * Repeats a step, which must be harmless to repeat, until it succeeds.
 * @throws CliError with the last failure once it has failed for two minutes, and each CliError of
 *   the step at once
 */
export async function patiently<T>(what: string, step: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + failingMaxMs
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (error instanceof CliError) throw error
      if (performance.now() > untilMs) {
        const why = `${what} failed: ${(error as Error).message}. Run the command again.`
        throw new CliError(why, { cause: error })
      }
      await sleep(retryMs)
    }
  }
}
