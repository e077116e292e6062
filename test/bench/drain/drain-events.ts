/**
 * The waiting events of the drain benchmark, in batch messages as an edge writes them: bodies of
 * 1.75 KB of a fleet in which every phone sends several, and signals differ between phones. The
 * same options give the same bytes in every process.
 */
import { toEventId } from '#shared/core/base/ids.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { encodeEventHead } from '#shared/core/telemetry/event-batch.ts'
import { encodeBatch, type Waiter } from '../../../services/ingest/group-commit.ts'

export type DrainEvents = {
  /** A multiple of the events of a device and of `alertEvery`. */
  events: number
  /** Whether one event in five raises an alert, in its own session. */
  alerting: boolean
  /** When the first event was received, in ms since 1970. */
  startedAtMs: number
  /** Whether events have a connection, of a network that 20 devices share. */
  connected?: boolean
  /** Whether bodies tell of their phones: what an edge keeps of identifiers, and traits. */
  phones?: boolean
  /**
   * Every event is of a new install that sends all that an SDK can send: of a phone and users of
   * its own, or a thousand of a tenant alike.
   */
  installs?: 'own' | 'equal'
  /** The share of devices that come from another network each time, from 0 to 1. */
  roaming?: number
}

export const drainTenants = ['acme', 'globex', 'initech', 'umbrella'] as const
export const eventsPerDevice = 6
export const alertEvery = 5
const equalInstalls = 1_000
/** As many events as 64 connections of a closed loop bring into one message. */
const eventsPerMessage = 56
const bodyBytes = 1_750
/** The rate of their arrival. */
const eventsPerMs = 10

/** The messages one by one, in order. */
export function* makeDrainMessages(options: DrainEvents): Generator<Uint8Array> {
  const make = createEvents(options)
  for (let from = 0; from < options.events; from += eventsPerMessage) {
    const count = Math.min(eventsPerMessage, options.events - from)
    yield encodeBatch(Array.from({ length: count }, (_, index) => make(from + index)))
  }
}

export const expectedAlerts = ({ events, alerting }: DrainEvents): number =>
  alerting ? events / alertEvery : 0

function createEvents(options: DrainEvents): (n: number) => Waiter {
  const { events, alerting, startedAtMs, phones = false, roaming = 0, installs } = options
  const connected = options.connected ?? (roaming > 0 || installs !== undefined)
  const devices = installs === undefined ? events / eventsPerDevice : events
  if (devices % alertEvery !== 0) {
    throw new Error(`${events} events are of no whole number of devices`)
  }
  const score = compilePolicy(defaultPolicy)
  const clean = cleanSignals()
  const common = {
    policy_version: 1,
    policy_hash: toPolicyHash(defaultPolicy),
    epoch: 1,
  }
  const isRoaming = (device: number) => (device % 100) / 100 < roaming
  return (n) => {
    const device = n % devices
    const visit = Math.floor(n / devices)
    const hostile = alerting && device % alertEvery === 0
    const signals = toSignals(clean, device, hostile)
    const session = hostile ? visit : visit >> 1
    const tenantId = drainTenants[device % drainTenants.length]!
    const platform = device % 3 === 0 ? 'ios' : 'android'
    const receivedAtMs = startedAtMs + Math.floor(n / eventsPerMs)
    const meta = { sdkVersion: '4.2.0', platform, receivedAtMs }
    const scored = score(signals, meta)
    if ((scored.action === 'ALLOW') === hostile) throw new Error(`it is ${scored.action}`)
    const ids = {
      tenantId,
      deviceId: `device-${device}`,
      sessionId: `session-${device}-${session}`,
    }
    // What is alike of some devices.
    const alike =
      installs === 'equal' ? Math.floor(device / drainTenants.length / equalInstalls) : device
    const phone = installs === undefined ? toPhone(device) : toWholePhone(alike)
    const account = installs === undefined ? '' : `"account_id":"account-${alike}",`
    const body = toBody(
      { ...ids, userId: `user-${alike}`, platform, n },
      {
        signals,
        phone:
          phones || installs !== undefined ? `${account}"device":${JSON.stringify(phone)},` : '',
      },
    )
    const head = encodeEventHead(
      {
        event_id: toEventId(body),
        tenant_id: tenantId,
        received_at: receivedAtMs,
        rasp_score: scored.score,
        rasp_action: scored.action,
        reasons: scored.reasons,
        ...common,
        ...(connected ? { connection: toConnection(alike, isRoaming(device) ? visit : 0) } : {}),
      },
      body.length,
    )
    return { head, body, bytes: Buffer.byteLength(head) + body.length + 2, arrivedMs: 0 }
  }
}

const devicesPerNetwork = 20
/** How far away the networks of the next visit are. */
const networksPerJourney = 97

function toConnection(device: number, journey: number): EventConnection {
  const network = Math.floor(device / devicesPerNetwork) + journey * networksPerJourney
  return {
    network: `81.${(network >> 8) & 255}.${network & 255}.0/24`,
    address_hash: `address-${device}`.padEnd(22, 'x'),
    country: 'DE',
    asn: 3320,
    organization: 'Example Telecom',
    latitude: 52.5 - (network % 40) / 10,
    longitude: 13.4 - (network % 50) / 10,
    kinds: [],
  }
}

/** Seven booleans a category, all clean. */
function cleanSignals(): Signals {
  return Object.fromEntries(
    categories.map((category) => {
      const names = Object.entries(signalCatalog[category])
        .filter(([name, { type }]) => type === 'boolean' && name !== 'app_attest_valid')
        .map(([name]) => name)
      return [category, Object.fromEntries(names.slice(0, 7).map((name) => [name, false]))]
    }),
  ) as Signals
}

/** The signals of a phone: each has its own numbers, fixed at its setup. */
function toSignals(clean: Signals, device: number, hostile: boolean): Signals {
  return {
    ...clean,
    tamper: {
      ...clean.tamper,
      pi_device_verdict: ['MEETS_DEVICE_INTEGRITY'],
      pi_app_verdict: 'PLAY_RECOGNIZED',
    },
    debugger: hostile ? { ...clean.debugger, frida_detected: true } : clean.debugger,
    ecosystem: {
      ...clean.ecosystem,
      factory_reset_at: 1_600_000_000_000 + device * 10_007,
      patch_age_days: device % 150,
    },
  }
}

type Facts = {
  tenantId: string
  deviceId: string
  sessionId: string
  userId: string
  platform: string
  n: number
}

/** Of 200 models, 25 setups each; one phone in ten is the reinstall of an earlier one. */
function toPhone(device: number) {
  const phone = device % 10 === 9 ? device - 9 : device
  const model = phone % 200
  const toHashed = (name: string) => `${name}-${phone}-`.padEnd(22, 'x')
  return {
    identifiers: { keychain_id: toHashed('keychain'), media_drm_id: toHashed('drm') },
    brand: 'Example',
    model: `Phone ${model}`,
    os_version: '15',
    build: `B${model}`,
    storage_bytes: 128e9,
    memory_bytes: 8e9,
    screen: '1080x2400',
    locale: `l${phone % 5}`,
    time_zone: 'Europe/Berlin',
    carrier: `carrier ${phone % 25}`,
    boot_at: 1_780_000_000_000 + phone * 100_000,
  }
}

/** A phone with as many identifiers as it may have, on hardware of its own. */
function toWholePhone(phone: number) {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const identifiers = names.map((name) => [name, `${name}-${phone}-`.padEnd(22, 'x')])
  return {
    ...toPhone(phone * 10),
    identifiers: Object.fromEntries(identifiers),
    model: `Phone ${phone}`,
  }
}

function toBody(facts: Facts, { signals, phone }: { signals: Signals; phone: string }): Buffer {
  const start =
    `{"tenant_id":"${facts.tenantId}","device_id":"${facts.deviceId}",` +
    `"session_id":"${facts.sessionId}","user_id":"${facts.userId}",${phone}` +
    `"sdk_meta":{"sdk_version":"4.2.0","platform":"${facts.platform}","batch_type":"periodic",` +
    `"sequence":${facts.n}},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},` +
    `"signals":${JSON.stringify(signals)},"app":{"trace":"`
  return Buffer.from(`${start}${'x'.repeat(Math.max(0, bodyBytes - start.length - 3))}"}}`)
}
