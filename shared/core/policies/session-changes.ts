/** Sessions by what another policy changes for them, each counted once. */

/** Most names in a report, because clients choose them. */
const namesMax = 100

/**
 * Of sessions with an alert under either policy: new and gone have one under the other policy or
 * the first alone; stricter and milder have one under both, and the highest action rises or falls.
 */
export type SessionChanges = {
  new: number
  gone: number
  stricter: number
  milder: number
  unchanged: number
}
export type NamedChanges = SessionChanges & { name: string }
export type SessionChange = keyof SessionChanges

export const noChanges = (): SessionChanges => ({
  new: 0,
  gone: 0,
  stricter: 0,
  milder: 0,
  unchanged: 0,
})

/** The highest action of a set: bit n stands for action n. */
const toHighest = (bits: number): number => (bits === 0 ? 0 : 31 - Math.clz32(bits))

/**
 * What changes for a session.
 * @param before its actions as bits: bit n is set when an event has action n
 * @returns null for a session without an alert under either policy
 */
export function toSessionChange(before: number, after: number): SessionChange | null {
  const [from, to] = [toHighest(before), toHighest(after)]
  if (from === to) return from === 0 ? null : 'unchanged'
  if (from === 0) return 'new'
  if (to === 0) return 'gone'
  return to > from ? 'stricter' : 'milder'
}

/** The entry of a name; creates it if it is missing. */
export function ofName<T>(all: Map<string, T>, name: string, make: () => T): T {
  const present = all.get(name)
  if (present !== undefined) return present
  const made = make()
  all.set(name, made)
  return made
}

/** The names with most changes first, then those with most sessions; at most 100. */
export function toNamed(all: ReadonlyMap<string, SessionChanges>): NamedChanges[] {
  const changed = (one: SessionChanges) => one.new + one.gone + one.stricter + one.milder
  return [...all]
    .map(([name, one]) => ({ name, ...one }))
    .sort(
      (a, b) => changed(b) - changed(a) || b.unchanged - a.unchanged || (a.name < b.name ? -1 : 1),
    )
    .slice(0, namesMax)
}
