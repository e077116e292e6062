/** Alerts gained and lost under the names that clients choose: platforms, SDK versions, flags. */

/** Clients choose the names, so a report has no more than these. */
const namesMax = 100

/** What stands under a name, made when there is none yet. */
export function ofName<T>(all: Map<string, T>, name: string, make: () => T): T {
  const present = all.get(name)
  if (present !== undefined) return present
  const made = make()
  all.set(name, made)
  return made
}

/**
 * The names with most changes first, then those with most alerts; at most 100.
 * @param alertsOf the alerts that stand under a name at all
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
