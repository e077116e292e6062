/**
 * The filters of lists of alerts, each once. From an entry come the parameter of both APIs with its
 * place in OpenAPI, the condition in SQL, the option of `di alerts list`, and the control of the
 * console. shared/README.md says how to add one.
 */
import { severities } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { decisions, dispositions } from './dispositions.ts'

/**
 * What a parameter takes: some of these words, an id, a score from 0 to 100, an ISO-8601 instant,
 * a country, the number of a network's operator, a network in CIDR notation, or the email of an
 * operator and `unassigned`.
 */
export type FilterValues =
  | readonly [string, ...string[]]
  | 'id'
  | 'score'
  | 'instant'
  | 'country'
  | 'asn'
  | 'network'
  | 'assignee'

/**
 * How a value is compared with the column; shared/io has the SQL of each. `page` and `updated`
 * belong to `from`, `to` and `updated_after`: they decide which rows of an index are read.
 */
export type FilterTest =
  | 'is_one_of'
  | 'has_one_of'
  | 'is_severity'
  | 'at_least'
  | 'is'
  | 'is_number'
  | 'is_within'
  | 'page'
  | 'updated'

/**
 * Which index finds the alerts of a filter. `list`: the index of the whole list and that of changes
 * carry the column. `ordered`: an index of its own in the order of the list. `few`: an index of its
 * own that finds few alerts. Without one the rows of the list are read.
 */
export type FilterIndex = 'list' | 'ordered' | 'few'

export type FilterEntry = {
  takes: FilterValues
  /** Of the parameter in the API. */
  description: string
  /** Of the table `alerts`. */
  column: string
  test: FilterTest
  index?: FilterIndex
  /** The counters by day and hour know it, so a total needs no alerts. */
  counted?: true
  /** A parameter of the admin API alone. */
  operatorsOnly?: true
}

/** The value of `assignee` that stands for alerts without one. */
export const unassigned = 'none'

export const alertFilters = {
  disposition: {
    takes: dispositions,
    description: 'Alerts with this disposition.',
    column: 'disposition',
    test: 'is_one_of',
    index: 'list',
    counted: true,
  },
  decision: {
    takes: decisions,
    description: 'Alerts with this action.',
    column: 'action',
    test: 'is_one_of',
    index: 'list',
    counted: true,
  },
  severity: {
    takes: severities,
    description: 'Alerts of this severity.',
    column: 'risk_score',
    test: 'is_severity',
    index: 'list',
  },
  flag: {
    takes: flagCodes,
    description: 'Alerts with this flag.',
    column: 'flags',
    test: 'has_one_of',
    index: 'list',
  },
  min_score: {
    takes: 'score',
    description: 'Alerts with this `decision.risk_score` or more.',
    column: 'risk_score',
    test: 'at_least',
    index: 'list',
  },
  device_id: {
    takes: 'id',
    description: 'Alerts of this device.',
    column: 'device_id',
    test: 'is',
    index: 'ordered',
    counted: true,
  },
  user_id: {
    takes: 'id',
    description: 'Alerts of this user or account.',
    column: 'user_id',
    test: 'is',
    index: 'ordered',
  },
  session_id: {
    takes: 'id',
    description: 'Alerts of this session.',
    column: 'session_id',
    test: 'is',
    index: 'few',
  },
  platform: {
    takes: 'id',
    description:
      'Alerts of this platform: `android`, `ios` or another in lower case. Alerts of older releases have none.',
    column: 'platform',
    test: 'is',
    index: 'list',
  },
  country: {
    takes: 'country',
    description:
      'Alerts whose event came from this country, ISO 3166-1 alpha-2. It is the country of the address, which a VPN can choose.',
    column: 'connection_country',
    test: 'is',
    index: 'list',
  },
  asn: {
    takes: 'asn',
    description:
      'Alerts whose event came from the networks of this operator: the number of the autonomous system, as `64500` or `AS64500`.',
    column: 'connection_asn',
    test: 'is_number',
    index: 'list',
  },
  network: {
    takes: 'network',
    description:
      'Alerts whose event came from this network or one within it, in CIDR notation. Of an address the /24 of IPv4 and the /48 of IPv6 is kept, so a longer prefix is refused.',
    column: 'connection_network',
    test: 'is_within',
    index: 'list',
  },
  from: {
    takes: 'instant',
    description:
      'Alerts created at this instant or later. ISO-8601 with an offset; a date is its midnight in UTC.',
    column: 'created_at',
    test: 'page',
    counted: true,
  },
  to: {
    takes: 'instant',
    description: 'Alerts created before this instant. The format is that of `from`.',
    column: 'created_at',
    test: 'page',
    counted: true,
  },
  updated_after: {
    takes: 'instant',
    description:
      'Alerts whose `updated_at` is this instant or later: raised or changed since. When you poll, go back a few seconds before the previous call: what was being written then may not have been in its answer.',
    column: 'changed_at',
    test: 'updated',
  },
  sdk_version: {
    takes: 'id',
    description:
      'alerts whose event came from this version of the SDK; those of older releases have none',
    column: 'sdk_version',
    test: 'is',
    operatorsOnly: true,
  },
  case_id: {
    takes: 'id',
    description: 'alerts of this case',
    column: 'case_id',
    test: 'is',
    index: 'ordered',
    operatorsOnly: true,
  },
  assignee: {
    takes: 'assignee',
    description: 'alerts of this assignee, an operator’s email; `none`: alerts without one',
    column: 'assignee',
    test: 'is',
    index: 'ordered',
    operatorsOnly: true,
  },
} as const satisfies Record<string, FilterEntry>

type Entries = typeof alertFilters
export type FilterName = keyof Entries
export type OperatorsFilter = {
  [Name in FilterName]: Entries[Name] extends { operatorsOnly: true } ? Name : never
}[FilterName]
export type CountedFilter = {
  [Name in FilterName]: Entries[Name] extends { counted: true } ? Name : never
}[FilterName]

type ValueOf<Takes extends FilterValues> = Takes extends readonly string[]
  ? readonly Takes[number][]
  : Takes extends 'score' | 'instant' | 'asn'
    ? number
    : string

/**
 * Which alerts, by the names of the parameters. A list of words means any of them; an instant is in
 * ms since 1970. What is left out does not matter.
 */
export type AlertFilter = {
  readonly [Name in FilterName]?: ValueOf<Entries[Name]['takes']> | undefined
}

/** A filter with its value. */
export type GivenFilter = {
  name: FilterName
  entry: FilterEntry
  value: string | number | readonly string[]
}

/** The names in the order of the table. */
export const filterNames = Object.keys(alertFilters) as FilterName[]

/**
 * The filters that have a value, in the order of the table.
 * @throws TypeError for a name that is not in the table: ignored, it would widen the list
 */
export function listGiven(filter: AlertFilter): GivenFilter[] {
  for (const name of Object.keys(filter)) {
    if (!Object.hasOwn(alertFilters, name)) throw new TypeError(`unknown alert filter: ${name}`)
  }
  return filterNames.flatMap((name) => {
    const value = filter[name]
    return value === undefined ? [] : [{ name, entry: alertFilters[name], value }]
  })
}

/** What alerts are counted by, for people who choose a filter: each is the name of one. */
export const countedBys = ['flag', 'sdk_version'] as const satisfies readonly FilterName[]
export type CountedBy = (typeof countedBys)[number]

/** Whether the counters know all filters that are given. */
export const isCounted = (filter: AlertFilter): boolean =>
  listGiven(filter).every(({ entry }) => entry.counted === true)
