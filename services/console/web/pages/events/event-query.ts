/** The filters of the list of events, as the URL and the API have them. Pure. */
import { networkKinds } from '#shared/core/network/network-list.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'

type Search = Record<string, string>

/** Filters of several values, as the API has them with commas. */
export const chosenFilters = [
  { name: 'action', text: 'Action', words: actions },
  { name: 'flag', text: 'Flag', words: flagCodes },
  { name: 'network_kind', text: 'Network kind', words: networkKinds },
] as const

const ids = [
  { name: 'device_id', text: 'Device' },
  { name: 'user_id', text: 'User or account' },
  { name: 'session_id', text: 'Session' },
] as const
const signal = { name: 'signal', text: 'Signal' } as const
const signalValue = { name: 'signal_value', text: 'Signal value' } as const
const others = [
  { name: 'platform', text: 'Platform' },
  { name: 'app_version', text: 'App version' },
  { name: 'sdk_version', text: 'SDK version' },
  { name: 'country', text: 'Country' },
  { name: 'asn', text: 'ASN' },
  { name: 'network', text: 'Network (CIDR)' },
  { name: 'min_score', text: 'Min score' },
  { name: 'max_score', text: 'Max score' },
] as const

/** Filters with one value that is typed. A value is that of a signal, so it needs one. */
export const listTypedFilters = (search: Search) => [
  ...ids,
  signal,
  ...(search.signal ? [signalValue] : []),
  ...others,
]

/** Every filter. */
export const names = [...chosenFilters, ...ids, signal, signalValue, ...others].map(
  ({ name }) => name,
)

/** Those that are set. */
export const pickFilters = (search: Search): Search =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = search[name]
      return value && (name !== 'signal_value' || search.signal) ? [[name, value]] : []
    }),
  )

/** A change of the URL that removes every filter and sets others. */
export const replaceFilters = (filters: Search): Search => ({
  ...Object.fromEntries(names.map((name) => [name, ''])),
  ...filters,
})
