/**
 * Counts of a list of events by a column: the columns, what each is counted of, and the list that a
 * count opens, which has exactly that many events. Pure.
 */

export const eventColumns = [
  'action',
  'flag',
  'signal',
  'signal_value',
  'app_version',
  'sdk_version',
  'platform',
  'country',
  'asn',
  'network_kind',
  'score',
] as const
export type EventColumn = (typeof eventColumns)[number]

/** Risk scores in bands, the last one with its end. */
export const scoreBands = ['0-19', '20-39', '40-59', '60-79', '80-100'] as const
export const scoresPerBand = 20

/**
 * The filters of a column itself that its counts leave out. An event has several flags, signals and
 * kinds of network, of which a list names any: so a count is that of the list with another value in
 * its place. A value of a signal is counted whether the signal was detected or not.
 */
const leftOut: { readonly [Column in EventColumn]?: readonly string[] } = {
  flag: ['flag'],
  signal: ['signal', 'signal_value'],
  signal_value: ['signal_value'],
  network_kind: ['network_kind'],
}

/** The filter that the counts of a column are of. */
export function toCountedFilter<Filter extends object>(by: EventColumn, filter: Filter): Filter {
  const own = leftOut[by] ?? []
  return Object.fromEntries(
    Object.entries(filter).filter(([name]) => !own.includes(name)),
  ) as Filter
}

/** Whether the filter has what the counts of the column leave out. */
export const leavesOut = (by: EventColumn, filter: object): boolean =>
  (leftOut[by] ?? []).some((name) => (filter as Record<string, unknown>)[name] !== undefined)

type Search = Record<string, string>

/**
 * The filters of the list behind a count, as parameters.
 * @param filter of the list beside the counts, whose filters are kept
 */
export function toListFilter(by: EventColumn, value: string, filter: Search): Search {
  const kept = toCountedFilter(by, filter)
  if (by !== 'score') return { ...kept, [by]: value }
  const [least, most] = value.split('-').map(Number) as [number, number]
  return {
    ...kept,
    min_score: `${Math.max(least, Number(filter.min_score ?? 0))}`,
    max_score: `${Math.min(most, Number(filter.max_score ?? 100))}`,
  }
}
