/** Alerts gained and lost under the names that clients choose: platforms, SDK versions, flags. */

/** Most names in a report, because clients choose them. */
const namesMax = 100

type NamedChanges = { name: string; gained: number; lost: number }

/** The entry of a name; creates it if it is missing. */
export function ofName<T>(all: Map<string, T>, name: string, make: () => T): T {
  const present = all.get(name)
  if (present !== undefined) return present
  const made = make()
  all.set(name, made)
  return made
}

/**
 * The names with most changes first, then those with most alerts; at most 100.
 * @param alertsOf all alerts of a name
 */
export function toNamed<T extends { gained: number; lost: number }>(
  all: ReadonlyMap<string, T>,
  alertsOf: (one: T) => number,
): (T & { name: string })[] {
  const changes = ({ gained, lost }: T) => gained + lost
  return [...all]
    .map(([name, one]) => ({ ...one, name }))
    .sort(
      (a, b) => changes(b) - changes(a) || alertsOf(b) - alertsOf(a) || (a.name < b.name ? -1 : 1),
    )
    .slice(0, namesMax)
}

/** The part of a named entry that reports by flag show. */
export const toGainedLost = ({ name, gained, lost }: NamedChanges): NamedChanges => ({
  name,
  gained,
  lost,
})
