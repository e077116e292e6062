/** Whether edges have the network data that an entry of a list needs. Pure. */

/** What is needed of the answer with the files of network data. */
type NetworkData = Readonly<{
  is_on: boolean
  data: readonly Readonly<{ gives: readonly string[]; state: string }>[]
}>

/** The kinds of entries that connections are matched by, and what of an address each needs. */
const needs = { network: null, asn: 'operator', country: 'country' } as const
type ConnectionKind = keyof typeof needs

export const isOfConnections = (kind: string): kind is ConnectionKind => Object.hasOwn(needs, kind)

/**
 * Why no edge can act on an entry of a kind.
 * @returns null where one can
 */
export function toMissingData(kind: ConnectionKind, { is_on, data }: NetworkData): string | null {
  const then = 'Until there is some, the entry acts on no event.'
  if (!is_on) return `Network data is off: NETWORK_DATA names no folder. ${then}`
  const need = needs[kind]
  if (need === null) return null
  const isGiven = data.some(({ gives, state }) => state !== 'broken' && gives.includes(kind))
  return isGiven ? null : `No file of NETWORK_DATA gives the ${need} of an address. ${then}`
}
