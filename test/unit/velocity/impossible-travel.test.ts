// Impossible travel of a user, as of each event.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { travelSightingsMax } from '#shared/core/base/limits/history.ts'
import type { PlaceBits } from '#shared/core/network/place.ts'
import {
  findImpossibleTravel,
  type TravelSighting,
} from '#shared/core/velocity/impossible-travel.ts'
import { seed } from '../../support/process/seed.ts'

const hour = 3_600_000
const day = 86_400
const kinds = { city: 1, hidden: 2, mobile: 4 }

function at(country: string, coordinates: [number, number] | null, more = 0): PlaceBits {
  const letters = country.charCodeAt(0) + country.charCodeAt(1) * 256
  const [latitude, longitude] = coordinates ?? [-90, -180]
  const high =
    Math.round(((latitude + 90) * 65_534) / 180) +
    Math.round(((longitude + 180) * 65_534) / 360) * 65_536
  return [letters + (more + (coordinates === null ? 0 : kinds.city)) * 65_536, high]
}

const berlin = at('DE', [52.52, 13.41])
const munich = at('DE', [48.14, 11.58])
const newYork = at('US', [40.71, -74.01])
const tokyo = at('JP', [35.68, 139.69])

type Sighting = Partial<TravelSighting> & { atMs: number; place: PlaceBits }

/** Each next sighting is of another device and session, unless it says otherwise. */
const toRows = (sightings: readonly Sighting[]): TravelSighting[] =>
  sightings.map((one, index) => {
    const number = index + 1
    return { streamOffset: number, event: number, userDevice: number, session: number, ...one }
  })

const find = (sightings: readonly Sighting[], windowSeconds = day) => {
  const rows = toRows(sightings)
  return findImpossibleTravel(rows, windowSeconds, rows)
}
const isFound = (sightings: readonly Sighting[], windowSeconds = day) =>
  find(sightings, windowSeconds).map((journey) => journey !== null)

describe('impossible travel', () => {
  it('is told with both countries, distance, time and speed', () => {
    expect(
      find([
        { place: berlin, atMs: 0 },
        { place: newYork, atMs: 2 * hour },
      ]),
    ).toEqual([
      null,
      { from_country: 'DE', to_country: 'US', distance_km: 6_386, hours: 2, speed_kmh: 3_193 },
    ])
  })

  it.each([
    ['faster than 1,000 km/h', 6.3, true],
    ['slower than 1,000 km/h', 6.5, false],
    ['as fast as an airliner', 6_385 / 900, false],
    ['at one instant', 0, true],
    ['before, by the clock of another edge', -1, true],
  ])('%s', (_, hours, expected) => {
    const sightings = [
      { place: berlin, atMs: 10 * hour },
      { place: newYork, atMs: (10 + hours) * hour },
    ]
    expect(isFound(sightings)).toEqual([false, expected])
  })

  it.each([
    ['of one session on one device', { session: 1, userDevice: 1 }, false],
    ['of another session on one device', { userDevice: 1 }, true],
    ['of one session on another device', { session: 1 }, true],
    ['of a session on a placeholder device', { userDevice: 0 }, true],
    ['of placeholders', { userDevice: 0, session: 0 }, false],
  ])('%s', (_, more, expected) => {
    const sightings = [
      { place: berlin, atMs: 0 },
      { place: newYork, atMs: hour, ...more },
    ]
    expect(isFound(sightings)).toEqual([false, expected])
  })

  it('is no trip of up to 500 km', () => {
    const hamburg = at('DE', [53.55, 9.99])
    const near = [berlin, hamburg].map((place) => ({ place, atMs: 0 }))
    const far = [berlin, munich].map((place) => ({ place, atMs: 0 }))
    expect(isFound(near)).toEqual([false, false])
    expect(isFound(far)).toEqual([false, true])
  })

  it.each([
    ['hidden', kinds.hidden],
    ['hidden in a mobile network', kinds.hidden + kinds.mobile],
  ])('is not from or to a place that is %s', (_, more) => {
    const hidden = at('US', [40.71, -74.01], more)
    for (const places of [
      [berlin, hidden],
      [hidden, berlin],
      [berlin, [0, 0] as const],
      [[0, 0] as const, berlin],
    ]) {
      expect(isFound(places.map((place) => ({ place, atMs: 0 })))).toEqual([false, false])
    }
  })

  it('of one device is none to a mobile network, which takes a guest home', () => {
    const roaming = at('DE', [52.52, 13.41], kinds.mobile)
    const hotel = { place: tokyo, atMs: hour, userDevice: 1 }
    expect(isFound([{ place: roaming, atMs: 0 }, hotel])).toEqual([false, false])
    expect(
      isFound([
        { ...hotel, atMs: 0 },
        { place: roaming, atMs: 1, userDevice: 1 },
      ]),
    ).toEqual([false, false])
    expect(
      isFound([
        { place: roaming, atMs: 0 },
        { ...hotel, userDevice: 2 },
      ])[1],
    ).toBe(true)
  })

  it('without cities is none between countries that touch, and counts their nearest parts', () => {
    const of = (country: string, atMs = 0) => ({ place: at(country, null), atMs })
    expect(isFound([of('DE'), of('FR')])).toEqual([false, false])
    expect(isFound([of('RU'), of('PL')])).toEqual([false, false])
    expect(isFound([of('DE'), of('BR', hour)])).toEqual([false, true])
    expect(isFound([of('DE'), of('BR', 12 * hour)])).toEqual([false, false])
    expect(isFound([of('US'), { place: newYork, atMs: 0 }])).toEqual([false, false])
  })

  it('is looked for as far back as the window reaches', () => {
    const sightings = [
      { place: berlin, atMs: 0 },
      { place: newYork, atMs: hour },
    ]
    expect(isFound(sightings, 3_600)).toEqual([false, false])
    expect(isFound(sightings, 3_601)).toEqual([false, true])
  })

  it('tells of the fastest journey', () => {
    const [, , third] = find([
      { place: tokyo, atMs: 20 * hour },
      { place: berlin, atMs: 15 * hour },
      { place: newYork, atMs: 20.5 * hour },
    ])
    expect(third!.from_country).toBe('JP')
  })

  it('compares with so many sightings and no more', () => {
    const others = (count: number): Sighting[] => [
      { place: newYork, atMs: 0 },
      ...Array.from({ length: count }, () => ({ place: [0, 0] as const, atMs: 0 })),
      ...Array.from({ length: count }, () => ({ place: berlin, atMs: 0 })),
      { place: berlin, atMs: 1, userDevice: 1_000, session: 1_000 },
    ]
    expect(isFound(others(travelSightingsMax - 1)).at(-1)).toBe(true)
    expect(isFound(others(travelSightingsMax)).at(-1)).toBe(false)
  })

  it('is the same whatever the order, the repetitions and the events asked about', () => {
    const sighting = fc.record({
      place: fc.constantFrom(berlin, munich, newYork, tokyo, at('BR', null), [0, 0] as const),
      atMs: fc.integer({ min: 0, max: 20 }).map((n) => n * hour),
      userDevice: fc.integer({ min: 0, max: 3 }),
      session: fc.integer({ min: 0, max: 3 }),
    })
    fc.assert(
      fc.property(
        fc.array(sighting, { maxLength: 20 }),
        fc.integer({ min: 1, max: 1_000 }),
        (sightings, factor) => {
          const rows = toRows(sightings)
          const whole = findImpossibleTravel(rows, day, rows)
          const mixed = [...rows, ...rows].sort(
            (a, b) => ((a.event * factor) % 101) - ((b.event * factor) % 101),
          )
          expect(findImpossibleTravel(mixed, day, rows)).toEqual(whole)
          rows.forEach((row, index) => {
            expect(findImpossibleTravel(rows, day, [row])).toEqual([whole[index]])
            expect(findImpossibleTravel(rows.slice(0, index + 1), day, [row])).toEqual([
              whole[index],
            ])
          })
        },
      ),
      { seed },
    )
  })
})
