// Whether an event comes from another phone than the first one of its device id.
import { describe, expect, it } from 'vitest'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import { toInstallTraits } from '#shared/core/identity/install-traits.ts'
import { findOtherPhone, toFixedText } from '#shared/core/identity/other-phone.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const hash = (text: string) => text.padEnd(22, '0')
const device = {
  brand: 'Google',
  model: 'Pixel 8',
  os_version: '14',
  storage_bytes: 128e9,
  memory_bytes: 8e9,
  screen: '1080x2400',
  locale: 'de-DE',
  time_zone: 'Europe/Berlin',
  identifiers: { media_drm_id: hash('drm'), android_id: hash('android') },
}
const toTraits = (more: object = {}, attestedKey: string | null = null): InstallTraits => {
  const [event] = makeEvents([{ more: { device: { ...device, ...more } } }])
  const install = { token_id: 'token', attested_key: attestedKey }
  return toInstallTraits({ ...event!, install })!
}
const find = (more: object, keys: [first: string | null, own: string | null] = [null, null]) =>
  findOtherPhone(toFixedText(toTraits({}, keys[0])), toTraits(more, keys[1]))
const ids = (media_drm_id: string, android_id: string) => ({
  identifiers: { media_drm_id: hash(media_drm_id), android_id: hash(android_id) },
})

describe('an event of the same phone', () => {
  it.each([
    ['after an update of the system', { os_version: '15', build: 'new', memory_bytes: 7.8e9 }],
    ['with other settings', { locale: 'en-US', time_zone: 'Asia/Tokyo', carrier: 'other' }],
    ['with a memory card', { storage_bytes: 512e9 }],
    ['that was unfolded', { screen: '2176x1812' }],
    ['that leaves things out', { model: '', memory_bytes: null, identifiers: {} }],
    ['in other letters', { brand: 'google', model: 'PIXEL 8' }],
    ['of a model whose hardware id an update changes', ids('drm-2', 'android')],
  ])('shows no other one: %s', (_, more) => {
    expect(find(more)).toEqual([])
  })

  it('shows none after a registration, which makes a new key, nor beside the same key', () => {
    expect(find({}, ['key', 'renewed'])).toEqual([])
    expect(find({ model: 'Renamed' }, ['key', 'key'])).toEqual([])
  })
})

describe('an event of another phone', () => {
  it.each([
    [{ model: 'Pixel 9' }, ['model']],
    [{ brand: 'Nokia' }, ['model']],
    [{ memory_bytes: 12e9 }, ['memory_bytes']],
    [ids('drm-2', 'android-2'), ['media_drm_id']],
    [{ model: 'Pixel 9', ...ids('drm-2', 'android-2') }, ['model', 'media_drm_id']],
  ])('shows by what cannot change: %j', (more, expected) => {
    expect(find(more)).toEqual(expected)
    expect(find(more, ['key', 'other'])).toEqual([...expected, 'attested_key'])
  })
})
