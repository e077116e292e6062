/** Devices by the address that their requests come from, as the service sees it. */
import type { DeviceRow } from './device-row.ts'

export const addressedDevices: readonly DeviceRow[] = [
  {
    device: 'phone behind the VPN of its company',
    base: 'android',
    signals: {},
    server: { connection: { country: 'VN', asn: 'AS64500', vpn: true, hosting: true, tor: false } },
    right: 'AAAAA',
    why: 'A company lets its phones out in a data centre.',
  },
  {
    device: 'iPhone with a privacy relay',
    base: 'ios',
    signals: {},
    server: { connection: { country: 'SG', relay: true, hosting: true } },
    right: 'AAAAA',
    why: 'Switched on by everyone who wants it.',
  },
  {
    device: 'phone whose requests leave Tor',
    base: 'android',
    signals: {},
    server: { connection: { tor: true } },
    right: 'AAAAA',
    why: 'Some reach the network in no other way.',
  },
  {
    device: 'address of every kind',
    base: 'android',
    signals: {},
    server: { connection: { tor: true, proxy: true, hosting: true, vpn: true, relay: true } },
    right: 'AAAAA',
    why: 'However bad an address is, it says nothing of the device.',
  },
]
