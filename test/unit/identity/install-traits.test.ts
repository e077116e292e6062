/** What an event tells of its phone: the same facts have the same traits, and little has none. */
import { describe, expect, it } from 'vitest'
import {
  readTraits,
  toIdentityKeys,
  toInstallTraits,
  toTraitsText,
} from '#shared/core/identity/install-traits.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'
import { hostingConnection } from '../../support/telemetry/connections.ts'

const hash = (letter: string) => letter.repeat(22)
const hardware = {
  brand: 'Google',
  model: 'Pixel 9',
  storage_bytes: 128e9,
  memory_bytes: 12e9,
  screen: '1080x2424',
}
const setup = { os_version: '16', locale: 'de-DE', time_zone: 'Europe/Berlin' }
const eventOf = (device: unknown, facts: EventFacts = {}): AcceptedEvent =>
  makeEvents([{ ...facts, more: { device, ...facts.more } }])[0]!
const traitsOf = (device: unknown, facts: EventFacts = {}) =>
  toInstallTraits(eventOf(device, facts))

describe('the traits that an earlier release stored', () => {
  it('have the model and the memory of their hardware', () => {
    const hardware = JSON.stringify(['Google', 'Pixel 8', 128e9, 8e9, '1080x2400'])
    const read = (text: string | null) => readTraits(JSON.stringify({ hardware: text }))
    expect(read(hardware)).toMatchObject({ model: '["google","pixel 8"]', memoryBytes: 8e9 })
    expect(read(null)).toMatchObject({ model: null, memoryBytes: null })
  })
})

describe('the traits of an event', () => {
  it('are none without a device object, and nearly none of an empty one', () => {
    for (const device of [undefined, null, 'x', 7, []]) expect(traitsOf(device)).toBe(null)
    const none = {
      identifiers: {},
      hardware: null,
      model: null,
      memoryBytes: null,
      setup: null,
      network: null,
      bootAtMs: null,
    }
    expect(traitsOf({})).toEqual({ ...none, users: [] })
    expect(toIdentityKeys('d', traitsOf({})!)).toEqual(['["install","d"]'])
  })

  it('have one text whatever the order of members, and are read back from it', () => {
    const facts = { userId: 'u-2', accountId: 'a-1', connection: hostingConnection }
    const one = traitsOf(
      { ...hardware, ...setup, identifiers: { b: hash('b'), a: hash('a') } },
      facts,
    )!
    const other = traitsOf(
      { identifiers: { a: hash('a'), b: hash('b') }, ...setup, ...hardware },
      { ...facts, userId: 'a-1', accountId: 'u-2' },
    )!
    expect(toTraitsText(one)).toBe(toTraitsText(other))
    expect(readTraits(toTraitsText(one))).toEqual(one)
    expect(one.users).toEqual(['a-1', 'u-2'])
    expect(one.network).toBe(hostingConnection.network)
    expect(toIdentityKeys('d', one)).toHaveLength(2 + 2 + 3 + 1)
  })

  it('have hardware and setup where every member of them is there', () => {
    const whole = traitsOf({ ...hardware, ...setup })!
    expect([whole.hardware, whole.setup]).not.toContain(null)
    for (const name of Object.keys(hardware)) {
      const less = traitsOf({ ...hardware, ...setup, [name]: undefined })!
      expect([name, less.hardware, less.setup]).toEqual([name, null, null])
    }
    for (const name of Object.keys(setup)) {
      const less = traitsOf({ ...hardware, ...setup, [name]: undefined })!
      expect([name, less.hardware, less.setup]).toEqual([name, whole.hardware, null])
    }
    const more = traitsOf({ ...hardware, ...setup, build: 'b', carrier: 'c' })!
    expect(more.hardware).toBe(whole.hardware)
    expect(more.setup).not.toBe(whole.setup)
  })

  it('read brand, model and version where an SDK puts them', () => {
    const { brand, model, ...rest } = hardware
    const { os_version: version, ...place } = setup
    const meta = { sdk_version: '1', platform: 'android', batch_type: 'start' }
    const beside = { ...meta, device_brand: brand, device_model: model, os_version: version }
    expect(traitsOf({ ...rest, ...place }, { more: { sdk_meta: beside } })).toEqual(
      traitsOf({ ...hardware, ...setup }),
    )
  })

  it('leave out what is no trait: other types, long texts, placeholders of users', () => {
    const wrong = { ...hardware, storage_bytes: '128e9', screen: 's'.repeat(129), boot_at: 12 }
    expect(traitsOf(wrong)).toMatchObject({ hardware: null, bootAtMs: null })
    expect(traitsOf({}, { userId: 'anonymous', accountId: 'a' })!.users).toEqual(['a'])
  })

  it('have the hashes of an edge alone, eight at most, and the attested key of the install', () => {
    const install = { token_id: 't', attested_key: 'key-1' }
    const identifiers = {
      a: hash('a'),
      plain: 'AB5E0000-imei',
      A: hash('x'),
      attested_key: hash('y'),
    }
    expect(traitsOf({ identifiers }, { install })!.identifiers).toEqual({
      a: hash('a'),
      attested_key: 'key-1',
    })
    const many = Array.from({ length: 2_000 }, (_, n) => [`id_${n}`, hash('a')])
    const kept = traitsOf({ identifiers: Object.fromEntries(many) })!.identifiers
    expect(Object.keys(kept)).toHaveLength(8)
  })

  it('have one start for all events between two restarts, in whatever form it is sent', () => {
    const bootMs = Date.UTC(2026, 1, 27, 6, 12, 44)
    const found = [-400, 0, 400].map((off) => traitsOf({ boot_at: bootMs + off })!.bootAtMs)
    expect(new Set(found)).toEqual(new Set([bootMs]))
    expect(traitsOf({ boot_at: new Date(bootMs).toISOString() })!.bootAtMs).toBe(bootMs)
  })

  it('are those that were kept, of an event without most of its body', () => {
    const traits = traitsOf({ ...hardware })!
    expect(toInstallTraits({ ...eventOf({}), traits })).toBe(traits)
    expect(toInstallTraits({ ...eventOf({ ...hardware }), traits: null })).toBe(null)
  })
})
