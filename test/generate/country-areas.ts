/**
 * `node test/generate/country-areas.ts COUNTRIES CODES` writes `shared/core/network/country-areas.ts`:
 * circles that cover the land of each country. It is run by hand, when borders change. COUNTRIES is
 * `countries-50m.json` of the npm package `world-atlas` (Natural Earth, in the public domain), CODES
 * is `codes.json` of `i18n-iso-countries`, for the two letters of a numeric code.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { toKilometres } from '#shared/core/network/distance.ts'

type Point = [longitude: number, latitude: number]
type Ring = Point[]
type Polygon = Ring[]
type Geometry = {
  id?: string
  properties: { name: string }
  type: 'Polygon' | 'MultiPolygon'
  arcs: number[][] | number[][][]
}
type Topology = {
  arcs: Point[][]
  transform: { scale: Point; translate: Point }
  objects: { countries: { geometries: Geometry[] } }
}

/** Circles are added until each is at most this wide. */
const radiusMaxKm = 500
/** What lies between two samples of the land. */
const spacingDegrees = 0.5
/** Rounded degrees, and what may lie between samples. */
const roundingKm = 80

/** Parts of a country that have a code of their own, with a box around each. */
const parts: [
  code: string,
  of: string,
  west: number,
  south: number,
  east: number,
  north: number,
][] = [
  ['GF', 'FR', -55, 2, -51, 6],
  ['GP', 'FR', -62, 15.7, -60.9, 16.6],
  ['MQ', 'FR', -61.3, 14.3, -60.7, 15],
  ['RE', 'FR', 55, -21.5, 56, -20.7],
  ['YT', 'FR', 44.9, -13.1, 45.4, -12.5],
  ['SJ', 'NO', 0, 74, 40, 82],
  ['BQ', 'NL', -69, 11.9, -62, 18],
]

const [countriesFile, codesFile] = process.argv.slice(2)
if (countriesFile === undefined || codesFile === undefined) {
  throw new Error('needs COUNTRIES and CODES')
}
const topology = JSON.parse(readFileSync(countriesFile, 'utf8')) as Topology
const codes = new Map(
  (JSON.parse(readFileSync(codesFile, 'utf8')) as [string, string, string][]).map(
    ([alpha2, , numeric]) => [numeric, alpha2],
  ),
)

const { scale, translate } = topology.transform
const arcs = topology.arcs.map((deltas) => {
  let [x, y] = [0, 0]
  return deltas.map(([dx, dy]): Point => {
    x += dx
    y += dy
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]]
  })
})

/** A ring that crosses the date line goes on beyond 180 degrees. */
function toRing(indexes: number[]): Ring {
  const points = indexes.flatMap((index) => {
    return index < 0 ? arcs[~index]!.toReversed() : arcs[index]!
  })
  let before = points[0]![0]
  return points.map(([longitude, latitude]) => {
    before += ((longitude - before + 540) % 360) - 180
    return [before, latitude]
  })
}

function toPolygons({ type, arcs: own }: Geometry): Polygon[] {
  const polygons = (type === 'Polygon' ? [own] : own) as number[][][]
  return polygons.map((rings) => rings.map(toRing))
}

const polygonsOf = new Map<string, Polygon[]>()
const add = (code: string, polygon: Polygon) => {
  polygonsOf.set(code, [...(polygonsOf.get(code) ?? []), polygon])
}
for (const geometry of topology.objects.countries.geometries) {
  const isKosovo = geometry.properties.name === 'Kosovo'
  const code = isKosovo ? 'XK' : codes.get(geometry.id ?? '')
  if (code === undefined) continue
  for (const polygon of toPolygons(geometry)) {
    const [longitude, latitude] = polygon[0]![0]!
    const part = parts.find(
      ([, of, west, south, east, north]) =>
        of === code &&
        longitude >= west &&
        longitude <= east &&
        latitude >= south &&
        latitude <= north,
    )
    add(part?.[0] ?? code, polygon)
  }
}

/** Points of the land: its borders and a grid inside. */
function toSamples([outline, ...holes]: Polygon): Point[] {
  const samples = [...outline!]
  const longitudes = outline!.map(([longitude]) => longitude)
  const latitudes = outline!.map(([, latitude]) => latitude)
  const north = Math.max(...latitudes)
  const east = Math.max(...longitudes)
  for (let latitude = Math.min(...latitudes); latitude < north; latitude += spacingDegrees) {
    for (let longitude = Math.min(...longitudes); longitude < east; longitude += spacingDegrees) {
      const point: Point = [longitude, latitude]
      const isInside = isWithin(outline!, point) && !holes.some((hole) => isWithin(hole, point))
      if (isInside) samples.push(point)
    }
  }
  return samples
}

function isWithin(ring: Ring, [x, y]: Point): boolean {
  let inside = false
  for (let at = 0, before = ring.length - 1; at < ring.length; before = at++) {
    const [ax, ay] = ring[at]!
    const [bx, by] = ring[before]!
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside
  }
  return inside
}

const kilometres = (a: Point, b: Point) =>
  toKilometres({ latitude: a[1], longitude: a[0] }, { latitude: b[1], longitude: b[0] })

/** Each next centre is the sample that is the farthest from those before. */
function toCircles(samples: Point[]): number[] {
  const middle = samples.reduce(([x, y], [dx, dy]): Point => [x + dx, y + dy], [0, 0])
  const mean: Point = [middle[0] / samples.length, middle[1] / samples.length]
  const nearest = samples.reduce((a, b) => (kilometres(a, mean) <= kilometres(b, mean) ? a : b))
  const centres = [nearest]
  const owner = samples.map(() => 0)
  const away = samples.map((point) => kilometres(point, nearest))
  for (;;) {
    const farthest = away.indexOf(away.reduce((a, b) => Math.max(a, b)))
    if (away[farthest]! <= radiusMaxKm) break
    const added = centres.push(samples[farthest]!) - 1
    samples.forEach((point, index) => {
      const distance = kilometres(point, samples[farthest]!)
      if (distance >= away[index]!) return
      away[index] = distance
      owner[index] = added
    })
  }
  return centres.flatMap(([longitude, latitude], index) => {
    const radius = Math.max(0, ...away.filter((_, sample) => owner[sample] === index))
    const east = ((Math.round(longitude) + 540) % 360) - 180
    return [Math.round(latitude), east, Math.ceil(radius + roundingKm)]
  })
}

const lines = [...polygonsOf]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([code, polygons]) => `  ${code}: [${toCircles(polygons.flatMap(toSamples)).join(', ')}],`)
writeFileSync(
  new URL('../../shared/core/network/country-areas.ts', import.meta.url),
  `/**
 * Circles that cover the land of each country, by ISO 3166-1 alpha-2. Each has three numbers: the
 * latitude and longitude of its centre in degrees, and its radius in kilometres. Made of Natural
 * Earth's borders, which are in the public domain, by \`test/generate/country-areas.ts\`.
 */
export const countryAreas: Readonly<Record<string, readonly number[]>> = {
${lines.join('\n')}
}
`,
)
