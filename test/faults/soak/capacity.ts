/**
 * How much a whole stack takes beside the load itself, on this machine: rates are tried from the
 * lowest up, each on a new stack, until one does not hold.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import { withWorld } from '../support/stack-under-load/stack-under-load.ts'
import { awaitLevel } from './faults.ts'

const lowestRate = 200
const highestRate = 10_000
const step = 1.5
const seconds = 40
/** Consumers that keep up are never further behind than that. */
const behindMaxMs = 5_000
/** Of what was due, so much must have been accepted. */
const acceptedMin = 0.95

/** What a rate came to. */
export type TriedRate = { rate: number; accepted: number; behindMs: number | null; held: boolean }

/**
 * @param onTried told of each rate
 * @returns the highest rate, in events/s, that was accepted and worked off as fast as it came
 * @throws when not even the lowest does
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
  if (capacity === null) throw new Error(`this machine does not take ${lowestRate} events/s`)
  return capacity
}

function tryRate(rate: number, seed: number): Promise<TriedRate> {
  const options = { seed, ratePerSecond: rate, tenants: 3, eventsPerDevice: 40 }
  return withWorld(options, async ({ running, load }) => {
    const nats = await connectQuietly(running.stack)
    try {
      await pause(seconds * 1_000)
      const accepted = load.accepted.size
      const { lagMs: behindMs } = await awaitLevel(nats)
      const kept = accepted >= acceptedMin * rate * seconds
      return { rate, accepted, behindMs, held: kept && behindMs !== null && behindMs < behindMaxMs }
    } finally {
      await nats.close()
      await load.stop()
    }
  })
}
