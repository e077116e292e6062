/**
 * The registrations of the planned history, a pure function of its events: four in five devices
 * register, phones with their own remotely provisioned certificate, every twentieth Android phone
 * with an unlocked bootloader, and emulators and others with a factory certificate that leaked.
 */
import { hash } from 'node:crypto'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  type AcceptedRegistration,
  encodeRegistration,
  type Registration,
} from '#shared/core/installs/registration.ts'
import type { HistoryEvent } from './history-alerts.ts'

/** A hash as registrations have them. */
const toName = (text: string) => hash('sha256', text, 'base64url').slice(0, 22)

/** The certificate of the emulators, and how many models they claim. */
export const leakedIssuer = toName('a leaked keybox')
export const leakedModels = 30

/** @param events in the order in which they were received */
export function makeRegistrations(events: readonly HistoryEvent[]): AcceptedRegistration[] {
  const ofDevice = new Map<string, HistoryEvent[]>()
  for (const one of events) {
    const { device_id: deviceId } = one.event.body
    ofDevice.set(deviceId, [...(ofDevice.get(deviceId) ?? []), one])
  }
  let leaks = 0
  return [...ofDevice.values()].flatMap((some, number) => {
    const [first] = some as [HistoryEvent]
    const platform = first.event.body.sdk_meta.platform.toLowerCase()
    if (number % 5 === 0 || (platform !== 'android' && platform !== 'ios')) return []
    const lastMs = some.at(-1)!.event.received_at
    const body: Registration = {
      ...(isLeaked(first, platform, number)
        ? toLeaked(first, leaks++)
        : toFacts(first, platform, number)),
      tenant_id: first.event.tenant_id,
      device_id: first.event.body.device_id,
      platform,
      app_id: 'com.acme.bank',
      root_epoch: 1,
      token_id: toName(`token of ${first.event.body.device_id}`),
      // Every seventh has not renewed its token.
      expires_at: number % 7 === 0 ? lastMs - 1 : lastMs + 10 * dayMs,
    }
    const { id } = encodeRegistration(body)
    const { tenant_id, received_at, streamOffset } = first.event
    const at = { received_at: received_at - 1_000, streamOffset: streamOffset - 1 }
    return [{ registration: true, event_id: id, tenant_id, ...at, body }]
  })
}

type Facts = Omit<
  Registration,
  'tenant_id' | 'device_id' | 'platform' | 'app_id' | 'root_epoch' | 'token_id' | 'expires_at'
>

/** Emulators, and phones of people who bought the certificate. */
const isLeaked = ({ phone }: HistoryEvent, platform: string, number: number): boolean =>
  platform === 'android' && (phone.kind.name === 'emulator-farm' || number % 6 === 2)

/** Each claims another model, as long as there are some. */
const toLeaked = ({ event }: HistoryEvent, leaks: number): Facts => ({
  provider: 'key_attestation',
  verdict: 'verified',
  reason: null,
  level: 'hardware',
  attested_key: toName(`key of ${event.body.device_id}`),
  issuers: [leakedIssuer],
  remotely_provisioned: false,
  device_model: `Model ${leaks % leakedModels}`,
})

function toFacts({ event }: HistoryEvent, platform: string, number: number): Facts {
  const key = toName(`key of ${event.body.device_id}`)
  const verified = { verdict: 'verified', reason: null, attested_key: key } as const
  if (platform === 'ios') {
    const issuers = [toName('Apple App Attestation CA 1')]
    const apple = {
      provider: 'app_attest',
      level: 'hardware',
      remotely_provisioned: false,
    } as const
    return { ...verified, ...apple, issuers, device_model: 'iPhone15,2' }
  }
  const android = { provider: 'key_attestation', level: 'hardware' } as const
  const own = { issuers: [toName(`certificate of ${key}`)], remotely_provisioned: true }
  const device_model = `Phone ${number % 9}`
  if (number % 20 !== 1) return { ...verified, ...android, ...own, device_model }
  const rejected = { verdict: 'rejected', reason: 'bootloader_unlocked' } as const
  return { ...verified, ...android, ...own, ...rejected, device_model }
}
