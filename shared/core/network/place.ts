/**
 * Where an address is: at the coordinates of its city, or else somewhere in its country. Places are
 * packed in the rows of `activity`, as `clickhouse/0019-connection-velocity.sql` does.
 */
import { countryAreas } from './country-areas.ts'
import { type Coordinates, toKilometres } from './distance.ts'

export type Place = {
  /** ISO 3166-1 alpha-2; null when no database knows it. */
  country: string | null
  /** Null when no database knows the city. */
  coordinates: Coordinates | null
  isMobile: boolean
}

/** Eight bytes as two little-endian numbers of 32 bits. */
export type PlaceBits = readonly [low: number, high: number]

const hasCoordinates = 1
const tellsNoPlace = 2
const mobile = 4
/** Latitude and longitude are in these parts of their range. */
const parts = 65_534

/**
 * @returns null where nothing was measured, and where the address is that of a VPN, a relay, Tor, a
 *   proxy or a data centre, behind which its user can be anywhere
 */
export function toPlace([low, high]: PlaceBits): Place | null {
  const bits = low >>> 16
  const country = countryOfBits(low & 0xffff)
  const isKnown = country !== null || (bits & hasCoordinates) !== 0
  if (!isKnown || (bits & tellsNoPlace) !== 0) return null
  const coordinates =
    (bits & hasCoordinates) === 0
      ? null
      : {
          latitude: ((high & 0xffff) * 180) / parts - 90,
          longitude: ((high >>> 16) * 360) / parts - 180,
        }
  return { country, coordinates, isMobile: (bits & mobile) !== 0 }
}

const countryOfBits = (bits: number): string | null =>
  bits === 0 ? null : String.fromCharCode(bits & 0xff, bits >>> 8)

/** A circle of the ground: its centre, and its radius in km. */
type Circle = Coordinates & { radiusKm: number }

const circlesOf = new Map<string, readonly Circle[]>()

/** None for a country that no table knows. */
function toCircles({ country, coordinates }: Place): readonly Circle[] {
  if (coordinates !== null) return [{ ...coordinates, radiusKm: 0 }]
  if (country === null || !Object.hasOwn(countryAreas, country)) return []
  const known = circlesOf.get(country)
  if (known !== undefined) return known
  const numbers = countryAreas[country]!
  const circles = Array.from({ length: numbers.length / 3 }, (_, index): Circle => {
    const [latitude, longitude, radiusKm] = numbers.slice(index * 3)
    return { latitude: latitude!, longitude: longitude!, radiusKm: radiusKm! }
  })
  circlesOf.set(country, circles)
  return circles
}

/** Between countries, of which there are some 240: computed once for each pair. */
const leastBetween = new Map<string, number>()

/**
 * How far apart two places are at least, in km. Of a country without a city that is its nearest
 * part, so it is 0 between countries that touch. A country that no table knows is nowhere: 0.
 */
export function toLeastKilometres(a: Place, b: Place): number {
  if (a.coordinates !== null && b.coordinates !== null) {
    return toKilometres(a.coordinates, b.coordinates)
  }
  if (a.country !== null && a.country === b.country) return 0
  const [one, other] = [toCircles(a), toCircles(b)]
  if (one.length === 0 || other.length === 0) return 0
  if (a.coordinates !== null || b.coordinates !== null) return toLeast(one, other)
  const pair = `${a.country} ${b.country}`
  const known = leastBetween.get(pair)
  if (known !== undefined) return known
  const least = toLeast(one, other)
  leastBetween.set(pair, least)
  return least
}

function toLeast(some: readonly Circle[], others: readonly Circle[]): number {
  let least = Number.POSITIVE_INFINITY
  for (const one of some) {
    for (const other of others) {
      least = Math.min(least, toKilometres(one, other) - one.radiusKm - other.radiusKm)
    }
  }
  return Math.max(0, least)
}
