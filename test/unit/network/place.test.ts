// Distances between places, and how places are kept.
import { describe, expect, it } from 'vitest'
import { countryAreas } from '#shared/core/network/country-areas.ts'
import { toKilometres } from '#shared/core/network/distance.ts'
import { type Place, toLeastKilometres, toPlace } from '#shared/core/network/place.ts'

const inCity = (latitude: number, longitude: number): Place => ({
  country: null,
  coordinates: { latitude, longitude },
  isMobile: false,
})
const inCountry = (country: string): Place => ({ country, coordinates: null, isMobile: false })

const berlin = inCity(52.52, 13.405)
const newYork = inCity(40.7128, -74.006)
const auckland = inCity(-36.8485, 174.7633)
const honolulu = inCity(21.3069, -157.8583)

const letters = (country: string) => country.charCodeAt(0) + country.charCodeAt(1) * 256

describe('a distance', () => {
  it.each([
    ['Berlin', 'New York', berlin, newYork, 6_385],
    ['Auckland', 'Honolulu, beyond the date line', auckland, honolulu, 7_076],
    ['one pole', 'the other', inCity(90, 10), inCity(-90, 70), 20_015],
    ['Berlin', 'Berlin', berlin, berlin, 0],
  ])('from %s to %s is right to a thousandth', (_, __, a, b, expected) => {
    expect(Math.abs(toLeastKilometres(a, b) - expected)).toBeLessThanOrEqual(expected / 1_000)
    expect(toLeastKilometres(b, a)).toBe(toLeastKilometres(a, b))
  })

  it.each([
    ['DE', 'FR'],
    ['US', 'CA'],
    ['US', 'MX'],
    ['RU', 'CN'],
    ['RU', 'FI'],
    ['RU', 'PL'],
    ['BR', 'GF'],
    ['ES', 'MA'],
    ['XK', 'RS'],
  ])('between %s and %s, which touch, is none', (a, b) => {
    expect(toLeastKilometres(inCountry(a), inCountry(b))).toBe(0)
  })

  it.each([
    // From Lisbon's coast to Natal, from Finland to Maine, from Western Australia to Java.
    ['DE', 'BR', 7_100],
    ['FI', 'US', 5_300],
    ['JP', 'DE', 7_800],
    ['AU', 'ZA', 7_900],
  ])('between %s and %s is at most that of their nearest parts', (a, b, nearest) => {
    const least = toLeastKilometres(inCountry(a), inCountry(b))
    expect(least).toBeGreaterThan(nearest / 2)
    expect(least).toBeLessThan(nearest)
  })

  it.each([
    ['RU', 'Vladivostok', inCity(43.12, 131.89)],
    ['RU', 'Kaliningrad', inCity(54.71, 20.51)],
    ['RU', 'Anadyr, beyond the date line', inCity(64.73, 177.5)],
    ['US', 'Honolulu', honolulu],
    ['US', 'Anchorage', inCity(61.22, -149.9)],
    ['US', 'Denver', inCity(39.74, -104.99)],
    ['FR', 'Paris', inCity(48.86, 2.35)],
    ['RE', 'Saint-Denis', inCity(-20.88, 55.45)],
    ['BR', 'Manaus', inCity(-3.12, -60.02)],
    ['CN', 'Urumqi', inCity(43.83, 87.62)],
    ['AU', 'Alice Springs', inCity(-23.7, 133.88)],
    ['NZ', 'Auckland', auckland],
    ['ES', 'Las Palmas', inCity(28.12, -15.44)],
    ['PT', 'Ponta Delgada', inCity(37.74, -25.67)],
  ])('from %s to its own %s is none', (country, _, city) => {
    expect(toLeastKilometres(inCountry(country), city)).toBe(0)
  })

  it('to a country that no table knows is none', () => {
    for (const code of ['ZZ', 'constructor']) {
      expect(toLeastKilometres(inCountry(code), berlin)).toBe(0)
      expect(toLeastKilometres(berlin, inCountry(code))).toBe(0)
    }
  })
})

describe('the circles of countries', () => {
  it('are on the globe, and none is as wide as a continent', () => {
    expect(Object.keys(countryAreas).length).toBeGreaterThan(230)
    for (const [code, numbers] of Object.entries(countryAreas)) {
      expect(code).toMatch(/^[A-Z]{2}$/)
      expect(numbers.length).toBeGreaterThan(0)
      expect(numbers.length % 3).toBe(0)
      numbers.forEach((value, index) => {
        const most = [90, 180, 600][index % 3]!
        expect(Math.abs(value)).toBeLessThanOrEqual(most)
      })
    }
  })
})

describe('a kept place', () => {
  const bits = (country: string, kinds: number, latitude = 0, longitude = 0) =>
    [letters(country) + kinds * 65_536, latitude + longitude * 65_536] as const

  it('is right to a kilometre', () => {
    const toParts = (degrees: number, range: number) =>
      Math.round(((degrees + range / 2) * 65_534) / range)
    const kept = toPlace(bits('DE', 1, toParts(52.52, 180), toParts(13.405, 360)))!
    expect(kept.country).toBe('DE')
    expect(toKilometres(kept.coordinates!, berlin.coordinates!)).toBeLessThan(1)
  })

  it('of a country alone has no coordinates', () => {
    expect(toPlace(bits('DE', 0))).toEqual({ country: 'DE', coordinates: null, isMobile: false })
    expect(toPlace(bits('DE', 4))).toEqual({ country: 'DE', coordinates: null, isMobile: true })
  })

  it('is none where nothing was measured, and where the address tells none', () => {
    expect(toPlace([0, 0])).toBeNull()
    expect(toPlace([4 * 65_536, 0])).toBeNull()
    expect(toPlace(bits('DE', 3, 1, 1))).toBeNull()
    expect(toPlace(bits('DE', 6))).toBeNull()
  })
})
