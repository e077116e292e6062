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
import { toPlaceBits } from '../../support/velocity/place-bits.ts'

const hour = 3_600_000
const day = 86_400

const at = (
  country: string,
  city: readonly [latitude: number, longitude: number] | null,
  ...kinds: string[]
): PlaceBits => {
  const coordinates = city === null ? null : { latitude: city[0], longitude: city[1] }
  return toPlaceBits({ country, coordinates, kinds })
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
    ['a VPN', ['vpn']],
    ['a relay', ['relay']],
    ['Tor', ['tor']],
    ['a proxy', ['proxy']],
    ['a data centre', ['hosting']],
    ['a VPN in a mobile network', ['mobile', 'vpn']],
  ])('is not from or to %s', (_, kinds) => {
    const hidden = at('US', [40.71, -74.01], ...kinds)
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
    const roaming = at('DE', [52.52, 13.41], 'mobile')
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
