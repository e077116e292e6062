/**
 * The address of every phone, in the networks for documentation that the local stack has data of
 * (`deploy/local/network`). All phones of a person have one home network, so that no velocity rule
 * counts several.
 */
import type { Phone } from './population.ts'
import { hashToUnit } from './random.ts'

/** Phones that are machines in a data centre. */
const hosted: ReadonlySet<string> = new Set([
  ...['emulator-farm', 'cloud-phone', 'account-farm'],
  ...['test-emulator', 'ios-simulator'],
])

/** The address of a phone in its present state: a VPN that is on gives another one. */
export function addressOf({ kind, signals, users, deviceId }: Phone): string {
  if (hosted.has(kind.name)) return `203.0.113.${numberOf(deviceId, 1, 254)}`
  if (signals.network.vpn_active === true) return `198.51.100.${numberOf(deviceId, 1, 254)}`
  const network = numberOf(`network of ${users[0] ?? deviceId}`, 0, 0xffff).toString(16)
  return `2001:db8:${network}::${numberOf(deviceId, 1, 0xffff).toString(16)}`
}

/** A few phones cross a border now and then, in a network of the country beyond it. */
export const isCommuter = ({ kind, deviceId }: Phone): boolean =>
  kind.usage === 'person' && !hosted.has(kind.name) && numberOf(`border ${deviceId}`, 1, 12) === 1

/** The address of a phone beyond the border. */
export const roamingAddressOf = ({ deviceId }: Phone): string =>
  `192.0.2.${numberOf(deviceId, 1, 254)}`

const numberOf = (text: string, low: number, high: number): number =>
  low + Math.floor(hashToUnit(text) * (high - low + 1))
