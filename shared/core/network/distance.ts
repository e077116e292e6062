/** Distances on the globe. */

/** Degrees. */
export type Coordinates = { latitude: number; longitude: number }

const earthRadiusKm = 6_371
const toRadians = (degrees: number) => (degrees * Math.PI) / 180

/** The length of the shortest way along the ground, by the haversine formula. */
export function toKilometres(a: Coordinates, b: Coordinates): number {
  const north = Math.sin(toRadians(b.latitude - a.latitude) / 2)
  const east = Math.sin(toRadians(b.longitude - a.longitude) / 2)
  const parallel = Math.cos(toRadians(a.latitude)) * Math.cos(toRadians(b.latitude))
  const chord = Math.min(1, Math.sqrt(north * north + parallel * east * east))
  return 2 * earthRadiusKm * Math.asin(chord)
}
