/**
 * Where the events of the planned history come from, a pure function of the phone and the event:
 * phones of people from the networks of their country, emulators from the few of a data centre, and
 * what reports a VPN from that of a VPN, as does half of what every fifteenth phone sends without
 * reporting one. Every fortieth phone of a person is used in a second
 * country too, every fiftieth is on a new network in the last week, and every twentieth event comes
 * from an address of which nothing is measured. Addresses are those for benchmarks (RFC 2544) and
 * operators those for documentation (RFC 5398).
 */
import { hash } from 'node:crypto'
import { dayMs } from '#shared/core/base/instants.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Phone } from '../../../deploy/fleet/phones/population.ts'
import { historyEndMs } from './cookbook-span.ts'

const countries: Record<string, string> = {
  'Europe/Berlin': 'DE',
  'Europe/Paris': 'FR',
  'Europe/London': 'GB',
  'America/New_York': 'US',
  'America/Sao_Paulo': 'BR',
  'Asia/Kolkata': 'IN',
  'Asia/Ho_Chi_Minh': 'VN',
  'Europe/Warsaw': 'PL',
}
const codes = Object.values(countries)
const secondCountry = 'US'
const networksPerCountry = 40
const farmNetworks = 4

/** Where the new networks are: beyond those of all countries. */
const newFrom = codes.length * networksPerCountry

/** @returns undefined where nothing is measured */
export function toHistoryConnection(
  event: AcceptedEvent,
  phone: Phone,
): EventConnection | undefined {
  const ofEvent = toNumber(event.event_id)
  if (ofEvent % 20 === 0) return undefined
  const ofPhone = toNumber(phone.deviceId)
  if (phone.kind.name === 'emulator-farm') {
    return makeConnection(ofPhone % farmNetworks, 19, {
      country: 'NL',
      asn: 64_496,
      organization: 'Example Hosting Ltd',
      kinds: ['hosting'],
    })
  }
  const { network } = event.body.signals as Signals
  if (network?.vpn_active === true || (ofPhone % 15 === 3 && ofEvent % 2 === 0)) {
    const facts = { country: 'CH', asn: 64_497, organization: 'Example VPN', kinds: ['vpn'] }
    return makeConnection(200 + (ofPhone % 8), 19, facts)
  }
  const home = countries[phone.timezone]!
  const country = ofPhone % 40 === 1 && ofEvent % 3 === 0 ? secondCountry : home
  const isNew = ofPhone % 50 === 2 && event.received_at >= historyEndMs - 7 * dayMs
  const at = codes.indexOf(country)
  const number = isNew ? newFrom + (ofPhone % 5) : at * networksPerCountry + (ofPhone % 40)
  return makeConnection(number, 18, {
    country,
    asn: 64_500 + at,
    organization: `Example Telecom ${country}`,
  })
}

type Facts = Pick<EventConnection, 'country' | 'asn' | 'organization' | 'kinds'>

/** 198.18.0.0/15 has 512 networks of /24. */
const makeConnection = (number: number, second: number, facts: Facts): EventConnection => ({
  network: `198.${second + (number >> 8)}.${number & 255}.0/24`,
  address_hash: hash('sha256', `address ${second} ${number}`, 'base64url').slice(0, 22),
  ...facts,
})

const toNumber = (text: string): number =>
  Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16)
