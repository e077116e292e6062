/**
 * Whether the counter of an App Attest assertion did not rise: an honest key counts up with every
 * assertion, so an equal or lower counter is a copy, or a request that another one overtook. That
 * is why it is only a flag.
 */
import { orderWindowMs } from '#shared/core/base/limits/history.ts'
import { toHash } from '#shared/core/velocity/key-hash.ts'
import type { Moment } from '#shared/core/velocity/windowed-counts.ts'

/** An assertion: 32 bits of the hash of its key, and its counter; a counter of 0 is none. */
export type Assertion = { assertedKey: number; counter: number }

/** The assertion of an event, and the event by a number. */
export type AssertedEvent = Moment & Assertion & { event: number }

/**
 * The assertion of an event, from its head.
 * @returns null without one: its install has no App Attest key, or it came without an assertion
 */
export function toAssertion(
  install: { attested_key: string | null; counter?: number | undefined } | undefined,
): Assertion | null {
  if (install?.attested_key == null) return null
  const counter = toStoredCounter(install.counter)
  if (counter === 0) return null
  return { assertedKey: Number(BigInt(toHash(install.attested_key)) >> 32n), counter }
}

/** App Attest's counters have 32 bits, and the first assertion has 1. */
export const toStoredCounter = (counter: number | undefined): number =>
  Math.min(0xffff_ffff, Math.max(0, counter ?? 0))

/**
 * @param rows assertions of a device in any order, repetitions allowed
 * @param events the events to judge; an earlier copy of the same event is no reuse
 * @returns for each event the highest counter of its key before it, where its own is not above
 *   that, else null
 */
export function findReusedCounters(
  rows: readonly AssertedEvent[],
  events: readonly AssertedEvent[],
): (number | null)[] {
  const asserted = rows.filter((row) => row.counter > 0)
  const highest = new Map<number, number>()
  for (const { assertedKey, counter } of asserted) {
    highest.set(assertedKey, Math.max(counter, highest.get(assertedKey) ?? 0))
  }
  return events.map((own) => {
    if (own.counter === 0 || (highest.get(own.assertedKey) ?? 0) < own.counter) return null
    let before = 0
    for (const row of asserted) {
      const isEarlier = row.streamOffset < own.streamOffset && row.event !== own.event
      const isRecent = row.atMs > own.atMs - orderWindowMs
      if (row.assertedKey === own.assertedKey && isEarlier && isRecent) {
        before = Math.max(before, row.counter)
      }
    }
    return before >= own.counter ? before : null
  })
}
