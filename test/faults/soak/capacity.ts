/**
 * The capacity of a stack on this machine beside its load: tries rates from the lowest up, each on
 * a new stack, until one is too high.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import { withStackUnderLoad } from '../support/stack-under-load/stack-under-load.ts'
import { awaitNoBacklog } from './faults.ts'

const lowestRate = 200
const highestRate = 10_000
const step = 1.5
const seconds = 40
/** Consumers that keep up empty the backlog within this time. */
const behindMaxMs = 5_000
/** The share of due events that must have been accepted. */
const acceptedMin = 0.95

/** The result of one rate. */
export type TriedRate = { rate: number; accepted: number; behindMs: number | null; held: boolean }

/**
 * @param onTried called after each rate
 * @returns the highest rate, in events/s, at which the stack accepts and processes events as fast
 * as they come
 * @throws when the lowest rate is too high
 */
export async function measureCapacity(
  seed: number,
  onTried: (tried: TriedRate) => void,
): Promise<number> {
  let capacity: number | null = null
  for (let rate = lowestRate; rate <= highestRate; rate = Math.round(rate * step)) {
    const tried = await tryRate(rate, seed)
    onTried(tried)
    if (!tried.held) break
    capacity = rate
  }
  if (capacity === null) throw new Error(`this machine does not process ${lowestRate} events/s`)
  return capacity
}

function tryRate(rate: number, seed: number): Promise<TriedRate> {
  const options = { seed, ratePerSecond: rate, tenants: 3, eventsPerDevice: 40 }
  return withStackUnderLoad(options, async ({ running, load }) => {
    const nats = await connectQuietly(running.stack)
    try {
      await pause(seconds * 1_000)
      const accepted = load.accepted.size
      const { lagMs: behindMs } = await awaitNoBacklog(nats)
      const kept = accepted >= acceptedMin * rate * seconds
      return { rate, accepted, behindMs, held: kept && behindMs !== null && behindMs < behindMaxMs }
    } finally {
      await nats.close()
      await load.stop()
    }
  })
}
