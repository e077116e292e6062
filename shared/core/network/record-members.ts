/**
 * What the records of databases say, whatever their vendor. MaxMind and DB-IP nest their members,
 * IPinfo and ip-location-db do not, and some write numbers and booleans as text: each form is a row
 * of the table, and every row is tried.
 */
import { organizationCharactersMax } from '../base/limits/lists.ts'
import { type NetworkKind, networkKinds } from './network-list.ts'

/** What one record says of its network; a member that it lacks is null. */
export type RecordFacts = {
  /** ISO 3166-1 alpha-2, upper case. */
  country: string | null
  /** Degrees of the city, or of what the record has as its place. */
  latitude: number | null
  longitude: number | null
  asn: number | null
  organization: string | null
  kinds: NetworkKind[]
}

type Value = Exclude<keyof RecordFacts, 'kinds'>
type Row =
  | { path: string; gives: Value }
  | { path: string; kind: NetworkKind }
  | { path: string; kind: NetworkKind; values: readonly string[] }

const country: Row[] = [
  // GeoLite2, GeoIP2, DB-IP
  { path: 'country.iso_code', gives: 'country' },
  // IPinfo Lite, ip-location-db
  { path: 'country_code', gives: 'country' },
  // IPinfo Country, Location and Core; IPinfo Lite has a name here, which is no code
  { path: 'country', gives: 'country' },
  { path: 'geo.country_code', gives: 'country' },
]

const place: Row[] = [
  // GeoLite2 City, DB-IP City
  { path: 'location.latitude', gives: 'latitude' },
  { path: 'location.longitude', gives: 'longitude' },
  // ip-location-db
  { path: 'latitude', gives: 'latitude' },
  { path: 'longitude', gives: 'longitude' },
  // IPinfo Location
  { path: 'lat', gives: 'latitude' },
  { path: 'lng', gives: 'longitude' },
  { path: 'geo.latitude', gives: 'latitude' },
  { path: 'geo.longitude', gives: 'longitude' },
]

const operator: Row[] = [
  // GeoLite2 ASN, DB-IP ASN, ip-location-db
  { path: 'autonomous_system_number', gives: 'asn' },
  { path: 'autonomous_system_organization', gives: 'organization' },
  // GeoIP2 Enterprise, DB-IP's combined databases
  { path: 'traits.autonomous_system_number', gives: 'asn' },
  { path: 'traits.autonomous_system_organization', gives: 'organization' },
  // IPinfo: "AS15169"
  { path: 'asn', gives: 'asn' },
  { path: 'as_name', gives: 'organization' },
  { path: 'name', gives: 'organization' },
  { path: 'as.asn', gives: 'asn' },
  { path: 'as.name', gives: 'organization' },
]

/** Members in which vendors say how a line is connected, or who uses it. */
const connections = ['connection_type', 'traits.connection_type'].map(
  (path): Row => ({ path, kind: 'mobile', values: ['cellular'] }),
)
const users = ['user_type', 'traits.user_type', 'as_type', 'as.type', 'type'].map(
  (path): Row => ({ path, kind: 'hosting', values: ['hosting', 'content_delivery_network'] }),
)

const anonymity: Row[] = [
  // GeoIP2 Anonymous IP, and the same members in `traits`
  ...['', 'traits.'].flatMap((prefix): Row[] => [
    { path: `${prefix}is_tor_exit_node`, kind: 'tor' },
    { path: `${prefix}is_anonymous_vpn`, kind: 'vpn' },
    { path: `${prefix}is_hosting_provider`, kind: 'hosting' },
    { path: `${prefix}is_public_proxy`, kind: 'proxy' },
    { path: `${prefix}is_residential_proxy`, kind: 'proxy' },
  ]),
  // IPinfo Privacy: a flat record, or one in `anonymous` with `is_`
  ...(['tor', 'vpn', 'hosting', 'proxy', 'relay'] as const).flatMap((kind): Row[] => [
    { path: kind, kind },
    { path: `is_${kind}`, kind },
    { path: `anonymous.is_${kind}`, kind },
  ]),
  // IPinfo's carriers
  { path: 'carrier', kind: 'mobile', values: [] },
  { path: 'is_mobile', kind: 'mobile' },
]

const recordMembers: readonly Row[] = [
  ...country,
  ...place,
  ...operator,
  ...anonymity,
  ...connections,
  ...users,
]

const rows = recordMembers.map((row) => ({ row, steps: row.path.split('.') }))

/** What a record says; null when it says nothing of use. */
export function readRecord(record: unknown): RecordFacts | null {
  const facts: RecordFacts = {
    country: null,
    latitude: null,
    longitude: null,
    asn: null,
    organization: null,
    kinds: [],
  }
  for (const { row, steps } of rows) {
    const value = readMember(record, steps)
    if (value === undefined) continue
    if ('kind' in row) addKind(facts, row, value)
    else addValue(facts, row.gives, value)
  }
  if (facts.latitude === null || facts.longitude === null) {
    facts.latitude = null
    facts.longitude = null
  }
  const { kinds, ...values } = facts
  const isEmpty = kinds.length === 0 && Object.values(values).every((value) => value === null)
  if (!isEmpty) return facts
  return isResidentialProxy(record) ? { ...facts, kinds: ['proxy'] } : null
}

/** The least confidence, in percent, at which a network counts as a proxy. */
const proxyConfidenceMin = 50

/**
 * GeoIP Residential Proxy, whose every network is one: it has no member that says so, and how sure
 * it is. In Anonymous Plus, which says more, the confidence is that of a VPN.
 */
function isResidentialProxy(record: unknown): boolean {
  const confidence = readMember(record, ['anonymizer_confidence'])
  return typeof confidence === 'number' && confidence >= proxyConfidenceMin
}

function readMember(record: unknown, steps: readonly string[]): unknown {
  let value = record
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}

function addKind(facts: RecordFacts, row: Extract<Row, { kind: unknown }>, value: unknown): void {
  const holds = 'values' in row ? isOneOf(value, row.values) : isTrue(value)
  if (holds && !facts.kinds.includes(row.kind)) facts.kinds.push(row.kind)
}

const isTrue = (value: unknown) => value === true || value === 1 || value === 'true'

/** Any text where no values are named. */
function isOneOf(value: unknown, values: readonly string[]): boolean {
  if (typeof value !== 'string' || value === '') return false
  return values.length === 0 || values.includes(value.toLowerCase())
}

function addValue(facts: RecordFacts, gives: Value, value: unknown): void {
  if (facts[gives] !== null) return
  if (gives === 'country') facts.country = toCountry(value)
  else if (gives === 'asn') facts.asn = toAsn(value)
  else if (gives === 'organization') facts.organization = toName(value)
  else facts[gives] = toDegrees(value, gives === 'latitude' ? 90 : 180)
}

function toCountry(value: unknown): string | null {
  if (typeof value !== 'string' || !/^[A-Za-z]{2}$/.test(value)) return null
  const code = value.toUpperCase()
  // Placeholders for "no country" in lists of registries.
  return code === 'ZZ' || code === 'XX' ? null : code
}

function toAsn(value: unknown): number | null {
  const text = typeof value === 'string' ? value.replace(/^AS/i, '') : value
  const number = typeof text === 'string' && /^\d{1,10}$/.test(text) ? Number(text) : text
  if (typeof number !== 'number' || !Number.isInteger(number)) return null
  return number > 0 && number < 2 ** 32 ? number : null
}

function toName(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  return value.slice(0, organizationCharactersMax).toWellFormed()
}

function toDegrees(value: unknown, most: number): number | null {
  const isText = typeof value === 'string' && /^-?\d{1,3}(?:\.\d{1,12})?$/.test(value)
  const degrees = isText ? Number(value) : value
  if (typeof degrees !== 'number' || !Number.isFinite(degrees)) return null
  return Math.abs(degrees) <= most ? degrees : null
}

/** Kinds as the bits of a number, in the order of `networkKinds`. */
export const toKindBits = (kinds: readonly NetworkKind[]): number =>
  kinds.reduce((bits, kind) => bits | (1 << networkKinds.indexOf(kind)), 0)
