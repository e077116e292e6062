/**
 * A random stream of events and registrations of few installs, in messages as several edges write
 * them, with retries and replays; and what a plain walk through it finds. Independent of how
 * scorers find it.
 */
import fc from 'fast-check'
import { issuerModelsMax, retryMaxMs } from '#shared/core/base/limits/history.ts'
import type { Registration } from '#shared/core/installs/registration.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { decodeBatch, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { toName } from '#shared/io/identity/phone-link-store.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { walkPhones } from '../identity/walk-phones.ts'
import { makeConnection } from '../velocity/connection-model.ts'
import { type EventFacts, makeElement, makeRegistrationElement } from './accepted-events.ts'

type Sent =
  | { kind: 'event'; facts: EventFacts; atMs: number }
  | { kind: 'registration'; facts: Partial<Registration>; atMs: number }

const tenantIds = ['order-a', 'order-c']
const secondMs = 1_000

/** What a walk finds of the first copy of an event. */
type Told = { shared: boolean; reused: boolean; replayed: boolean }

export type OrderedStream = {
  tenantIds: readonly string[]
  messages: ConsumedMessage[]
  /** The same of each tenant alone, as on a stream of its own. */
  messagesOf: ReadonlyMap<string, ConsumedMessage[]>
  /** By `tenant device nonce` of the event. */
  told: Map<string, Told>
  registrations: number
  /**
   * Copies that are replays, by `tenant device nonce hour`, with whether the first one of the hour
   * is from another network.
   */
  replays: Map<string, boolean>
}

const anyElement = fc.record({
  tenantId: fc.constantFrom(...tenantIds),
  deviceId: fc.integer({ min: 1, max: 12 }).map((n) => `d-${n}`),
  key: fc.integer({ min: 1, max: 9 }).map((n) => `key-${n}`),
  issuer: fc.constantFrom('batch-1', 'batch-2', 'phone-1', 'phone-2', 'phone-3'),
  model: fc.integer({ min: 1, max: 60 }),
  verdict: fc.constantFrom('verified', 'verified', 'rejected') as fc.Arbitrary<'verified'>,
  what: fc.constantFrom('event', 'event', 'event', 'registration', 'again'),
  back: fc.integer({ min: 1, max: 90 }),
  hasInstall: fc.boolean(),
  network: fc.constantFrom(0, 1, 1, 1, 2),
  step: fc.integer({ min: 0, max: 3 }),
})

/** @param numRuns elements of the stream */
export function makeOrderedStream(
  { seed, policy, startMs }: { seed: number; policy: Policy; startMs: number },
  numRuns: number,
): OrderedStream {
  const drawn = fc.sample(anyElement, { seed, numRuns })
  const counters = new Map<string, number>()
  const sent: Sent[] = []
  drawn.forEach((one, n) => {
    const atMs = startMs + n * 12 * secondMs
    const earlier = sent[n - one.back]
    if (one.what === 'again' && earlier?.kind === 'event') {
      const facts = { ...earlier.facts, receivedAtMs: atMs, connection: toConnection(one) }
      sent.push({ kind: 'event', facts, atMs })
    } else if (one.what === 'registration') {
      sent.push({ kind: 'registration', atMs, facts: toRegistration(one, n) })
    } else {
      sent.push({ kind: 'event', atMs, facts: toEvent(one, { n, atMs, policy, counters }) })
    }
  })
  const ofTenant = (tenantId: string) => sent.filter((one) => tenantOf(one) === tenantId)
  const messagesOf = new Map(
    // A stream that began at another time, so its offsets are others.
    tenantIds.map((tenantId, n) => [tenantId, toMessages(ofTenant(tenantId), 1_000 * (n + 1))]),
  )
  const messages = toMessages(sent)
  return { tenantIds, messages, messagesOf, ...walk(sent, toPhoneOf(messages)) }
}

/** The phone of a device as of an instant, or the device before its phone is decided. */
type PhoneOf = (install: { tenantId: string; deviceId: string }, atMs: number) => string

function toPhoneOf(messages: readonly ConsumedMessage[]): PhoneOf {
  const events = messages.flatMap(
    ({ data, streamOffset }) => decodeBatch(data, streamOffset).events,
  )
  const links = new Map(walkPhones(events).map((link) => [toName(link), link]))
  return (install, atMs) => {
    const link = links.get(toName(install))
    const isKnown = link !== undefined && link.receivedAtMs <= atMs
    return isKnown && !link.doubtful.includes('attested_key') ? link.phoneId : install.deviceId
  }
}

const tenantOf = (one: Sent) => (one.kind === 'event' ? one.facts.tenantId : one.facts.tenant_id)

const toConnection = ({ network }: Drawn): EventFacts['connection'] =>
  network === 0 ? undefined : makeConnection({}, network)

type Drawn = typeof anyElement extends fc.Arbitrary<infer T> ? T : never

function toRegistration(one: Drawn, n: number): Partial<Registration> {
  // A phone's key has one certificate, whatever else was drawn.
  const issuer = one.key < 'key-4' ? `phone-${one.key}` : one.issuer
  return {
    tenant_id: one.tenantId,
    device_id: one.deviceId,
    provider: 'key_attestation',
    verdict: one.verdict,
    level: 'hardware',
    attested_key: one.key,
    issuers: [issuer, 'maker'],
    remotely_provisioned: issuer.startsWith('phone'),
    device_model: `model-${one.model}`,
    token_id: `token-${n}`,
  }
}

function toEvent(
  one: Drawn,
  {
    n,
    atMs,
    policy,
    counters,
  }: {
    n: number
    atMs: number
    policy: Policy
    counters: Map<string, number>
  },
): EventFacts {
  const { tenantId, deviceId, key } = one
  const facts = { tenantId, deviceId, sessionId: `s-${n % 40}`, receivedAtMs: atMs, policy }
  const event: EventFacts = {
    ...facts,
    nonce: n,
    connection: toConnection(one),
    signals: { root: { magisk_detected: n % 7 === 0 } },
    ...(n % 4 === 0 ? {} : { more: { device: toDevice(one) } }),
    ...(n % 5 === 0 ? { userId: `u-${one.model % 6}` } : {}),
  }
  if (!one.hasInstall) return event
  // A counter rises by one or two, stays, or falls back.
  const of = `${tenantId} ${deviceId} ${key}`
  const counter = Math.max(1, (counters.get(of) ?? 0) + one.step - (n % 11 === 0 ? 3 : 0))
  counters.set(of, Math.max(counter, counters.get(of) ?? 0))
  const install = { token_id: `token-of-${deviceId}`, attested_key: key }
  return { ...event, install: one.step === 3 ? install : { ...install, counter } }
}

/** What an edge keeps of a phone; two in three of a device's events tell the same. */
const toDevice = ({ model, key, step }: Drawn) => ({
  identifiers: { keychain_id: `${key}${'-'.repeat(22)}`.slice(0, 22) },
  brand: 'Maker',
  model: `Phone ${model % 3}`,
  screen: '1080x2400',
  storage_bytes: 128e9,
  memory_bytes: 8e9,
  os_version: '16',
  locale: step === 0 ? 'de-DE' : 'en-GB',
  time_zone: 'Europe/Berlin',
})

const sizes = [1, 3, 9, 2, 17, 5]

function toMessages(sent: readonly Sent[], createdMs = 0): ConsumedMessage[] {
  const messages: ConsumedMessage[] = []
  for (let at = 0; at < sent.length; ) {
    const some = sent.slice(at, at + sizes[messages.length % sizes.length]!)
    at += some.length
    const elements = some.map((one) =>
      one.kind === 'event' ? makeElement(one.facts) : makeRegistrationElement(one.facts, one.atMs),
    )
    const sequence = messages.length + 1
    messages.push({
      data: Buffer.from(`[${elements.join(',')}]`),
      proof: '',
      tracedEvents: '',
      sequence,
      streamOffset: toStreamOffset(createdMs, sequence),
      publishedMs: some[0]!.atMs,
      deliveries: 1,
    })
  }
  return messages
}

/** Finds everything by looking back at the whole stream for each event. */
function walk(
  sent: readonly Sent[],
  phoneOf: PhoneOf,
): Pick<OrderedStream, 'told' | 'registrations' | 'replays'> {
  const told = new Map<string, Told>()
  const replays = new Map<string, boolean>()
  let registrations = 0
  sent.forEach((one, n) => {
    if (one.kind === 'registration') {
      registrations++
      return
    }
    const name = nameOf(one.facts)
    const before = sent.slice(0, n)
    const first = before.find((other) => isCopy(other, name))
    if (first !== undefined) {
      const hour = `${name} ${Math.floor(one.atMs / 3_600_000)}`
      if (isReplay(one, first) && !replays.has(hour)) {
        replays.set(hour, isElsewhere(one, first))
      }
      return
    }
    told.set(name, {
      shared: isShared(one, before, phoneOf),
      reused: isReused(one.facts, before),
      replayed: isReplayed(one.facts, before),
    })
  })
  return { told, registrations, replays }
}

const nameOf = ({ tenantId, deviceId, nonce }: EventFacts): string =>
  `${tenantId} ${deviceId} ${nonce}`
type SentEvent = Extract<Sent, { kind: 'event' }>
const isReplay = (copy: SentEvent, first: SentEvent) =>
  copy.atMs - first.atMs > retryMaxMs || isElsewhere(copy, first)
function isElsewhere(copy: SentEvent, first: SentEvent): boolean {
  const networks = [copy, first].map(({ facts }) => facts.connection?.network)
  return !networks.includes(undefined) && networks[0] !== networks[1]
}
const isCopy = (one: Sent, name: string): one is SentEvent =>
  one.kind === 'event' && nameOf(one.facts) === name

function isShared(
  { facts: { tenantId = '', install }, atMs }: SentEvent,
  before: readonly Sent[],
  phoneOf: PhoneOf,
): boolean {
  if (install === undefined) return false
  const verified = before.flatMap((one) =>
    one.kind === 'registration' && one.facts.verdict === 'verified' ? [one.facts] : [],
  )
  const own = verified.filter((one) => one.tenant_id === tenantId)
  const ofKey = own.filter((one) => one.attested_key === install.attested_key)
  const countPhones = (some: readonly Partial<Registration>[]) =>
    new Set(some.map(({ device_id: deviceId }) => phoneOf({ tenantId, deviceId: deviceId! }, atMs)))
      .size
  if (countPhones(ofKey) > 1) return true
  return ofKey.some(({ issuers, remotely_provisioned: remote }) => {
    const same = own.filter((one) => one.issuers![0] === issuers![0])
    return remote
      ? countPhones(same) > 1
      : new Set(same.map((one) => one.device_model)).size > issuerModelsMax
  })
}

function isReused(own: EventFacts, before: readonly Sent[]): boolean {
  const { tenantId, deviceId, install } = own
  const counter = install?.counter
  if (counter === undefined) return false
  return before.some(
    (one) =>
      one.kind === 'event' &&
      one.facts.tenantId === tenantId &&
      one.facts.deviceId === deviceId &&
      one.facts.install?.attested_key === install?.attested_key &&
      (one.facts.install?.counter ?? 0) >= counter,
  )
}

/** Whether, of the device's copies since its last new event, one is a replay. */
function isReplayed({ tenantId, deviceId }: EventFacts, before: readonly Sent[]): boolean {
  const own = before.flatMap((one) => (one.kind === 'event' ? [one] : []))
  const ofDevice = own.filter(
    ({ facts }) => facts.tenantId === tenantId && facts.deviceId === deviceId,
  )
  for (let at = ofDevice.length - 1; at >= 0; at--) {
    const copy = ofDevice[at]!
    const first = ofDevice.find((one) => nameOf(one.facts) === nameOf(copy.facts))!
    if (first === copy) return false
    if (isReplay(copy, first)) return true
  }
  return false
}
