/**
 * Whether the country of an address contradicts what the phone says of itself: the country of its
 * SIM, and that of its time zone. Which time zones a country has is known to the runtime (CLDR).
 */
import type { Signals } from '../signals/signal-definition.ts'

/**
 * Territories whose SIMs and phones are those of another country: databases give them a code of
 * their own, operators and CLDR often do not.
 */
const relatives: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['IM', 'JE', 'GG'].map((code) => [code, 'GB'])),
  AX: 'FI',
  SJ: 'NO',
  LI: 'CH',
  XK: 'RS',
  ...Object.fromEntries(['SM', 'VA'].map((code) => [code, 'IT'])),
  ...Object.fromEntries(
    ['MC', 'GP', 'MQ', 'GF', 'RE', 'YT', 'PM', 'BL', 'MF'].map((code) => [code, 'FR']),
  ),
  ...Object.fromEntries(['PR', 'VI', 'GU', 'MP', 'AS'].map((code) => [code, 'US'])),
}

/** A country as SIMs and time zones name it. */
const toSovereign = (country: string): string => relatives[country] ?? country

/**
 * A traveller keeps the SIM and changes the time zone, and a phone with a foreign SIM keeps its
 * time zone. So one of both that agrees is enough.
 * @param country of the address
 * @returns null where the phone says nothing of a country
 */
export function findCountryMismatch(country: string, signals: Signals): boolean | null {
  const { sim_country: sim, time_zone: zone } = signals.ecosystem
  const agreements = [agreesWithSim(country, sim), agreesWithZone(country, zone)]
  const said = agreements.filter((one) => one !== null)
  return said.length === 0 ? null : !said.includes(true)
}

const twoLetters = /^[A-Za-z]{2}$/

function agreesWithSim(country: string, sim: unknown): boolean | null {
  if (typeof sim !== 'string' || !twoLetters.test(sim)) return null
  return toSovereign(sim.toUpperCase()) === toSovereign(country)
}

/** `Asia/Tokyo`, `America/Argentina/Salta`. `UTC` and `Etc/GMT+7` are of no country. */
const zoneName = /^(?!etc\/)[a-z_]{2,16}(?:\/[a-z_-]{2,24}){1,2}$/i

function agreesWithZone(country: string, zone: unknown): boolean | null {
  if (typeof zone !== 'string' || !zoneName.test(zone)) return null
  const sovereign = zonesOf(toSovereign(country))
  const zones = zonesOf(country)
  const name = zones.size + sovereign.size === 0 ? null : toZone(zone)
  return name === null ? null : zones.has(name) || sovereign.has(name)
}

/** By country; there are at most as many as codes of two letters. */
const zonesByCountry = new Map<string, ReadonlySet<string>>()

function zonesOf(country: string): ReadonlySet<string> {
  const known = zonesByCountry.get(country)
  if (known !== undefined) return known
  const zones = new Set(new Intl.Locale(`und-${country}`).getTimeZones())
  zonesByCountry.set(country, zones)
  return zones
}

/** Names by their spelling in lower case: as many as there are time zones and old names of them. */
const zonesByName = new Map<string, string>()

/** The name by which CLDR knows a zone, which has several; null for what is none. */
function toZone(text: string): string | null {
  const key = text.toLowerCase()
  const known = zonesByName.get(key)
  if (known !== undefined) return known
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions()
    zonesByName.set(key, timeZone)
    return timeZone
  } catch {
    return null
  }
}
