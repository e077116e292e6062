/** Places as rows of `activity` keep them; see `shared/core/network/place.ts`. */
import type { Coordinates } from '#shared/core/network/distance.ts'
import type { PlaceBits } from '#shared/core/network/place.ts'

export type PlaceFacts = {
  country: string
  coordinates: Coordinates | null
  kinds?: readonly string[]
}

const hiding = ['vpn', 'relay', 'tor', 'proxy', 'hosting']

export function toPlaceBits({ country, coordinates, kinds = [] }: PlaceFacts): PlaceBits {
  const letters = country.charCodeAt(0) + country.charCodeAt(1) * 256
  const flags =
    (coordinates === null ? 0 : 1) +
    (kinds.some((kind) => hiding.includes(kind)) ? 2 : 0) +
    (kinds.includes('mobile') ? 4 : 0)
  const toParts = (degrees: number, range: number) =>
    Math.round(((degrees + range / 2) * 65_534) / range)
  const high =
    coordinates === null
      ? 0
      : toParts(coordinates.latitude, 180) + toParts(coordinates.longitude, 360) * 65_536
  return [letters + flags * 65_536, high]
}
