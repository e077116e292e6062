/** Ids that mean "no id" are recognised, and ids of real installs are not. */
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readSentIdentifiers } from '#shared/core/identity/sent-identifiers.ts'
import { findPlaceholderIds, isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'

describe('a placeholder id', () => {
  it.each([
    ...['unknown', 'Unknown', ' UNKNOWN ', 'null', '(null)', '<null>', 'undefined', 'nil', 'none'],
    ...['N/A', 'n.a.', 'NaN', '-', '--', ' ', '0', '000000000000000', '[object Object]'],
    ...['00000000-0000-0000-0000-000000000000', '{00000000-0000-0000-0000-000000000000}'],
    ...['ffffffff-ffff-ffff-ffff-ffffffffffff', '00:00:00:00:00:00', '02:00:00:00:00:00'],
    ...['9774d56d682e549c', '9774D56D682E549C', '0123456789ABCDEF', 'unknown-device', 'device_id'],
    ...['anonymous', 'Guest', 'xxxx-xxxx', '"null"', "'undefined'", 'true', 'False'],
    ...["Instance of 'Future<String>'", "Instance of '_Future<String?>'", '[object Promise]'],
    ...['Optional("5f2b")', 'Optional(nil)', '${deviceId}', '{{user.id}}', '#{device_id}', '%s'],
    ...['%@', '%1$s', '$deviceId', '{deviceId}', '[object Undefined]', 'function () { }'],
  ])('is recognised: %j', (id) => {
    expect(isPlaceholderId(id)).toBe(true)
  })

  it.each([
    ...['1', 'a', 'x', 'device-1', 'test-allow', 'user', 'unknown-7', '東京', 'nina', 'f', 'f00'],
    ...['00000000-0000-0000-0000-000000000001', '02:00:00:00:00:01', `unknown${' '.repeat(90)}`],
  ])('is not recognised: %j', (id) => {
    expect(isPlaceholderId(id)).toBe(false)
  })

  const hashed = [
    ...['', 'null', 'undefined', 'None', 'none', 'nil', '0', 'unknown', 'Unknown', 'UNKNOWN'],
    ...['00000000-0000-0000-0000-000000000000', '[object Promise]', '%s', '${deviceId}'],
    ...["Instance of 'Future<String>'", '9774d56d682e549c', 'N/A', '02:00:00:00:00:00'],
  ]
  it.each(hashed)('is recognised as a hash, in each spelling: %j', (text) => {
    for (const name of ['md5', 'sha1', 'sha256', 'sha512']) {
      const digest = hash(name, text, 'buffer')
      const hex = digest.toString('hex')
      const spellings = [
        ...[hex, hex.toUpperCase(), hex.match(/../g)!.join(':')],
        ...[digest.toString('base64'), digest.toString('base64url')],
      ]
      expect(spellings.filter((id) => !isPlaceholderId(id))).toEqual([])
      // One bit more is the hash of something else.
      digest[0]! ^= 1
      expect(isPlaceholderId(digest.toString('hex'))).toBe(false)
      expect(isPlaceholderId(digest.toString('base64'))).toBe(false)
    }
  })

  it('is recognised as the UUID that Java makes of an empty name', () => {
    expect(isPlaceholderId('d41d8cd9-8f00-3204-a980-0998ecf8427e')).toBe(true)
    expect(isPlaceholderId('d41d8cd9-8f00-b204-e980-0998ecf8427e')).toBe(true)
  })

  it('is never the hash of a real id', () => {
    for (const text of ['device-1', 'ada@example.com', '1', 'a']) {
      expect(isPlaceholderId(hash('sha256', text, 'hex'))).toBe(false)
    }
  })

  it('is never a random id', () => {
    for (let n = 0; n < 1_000; n++) {
      expect(isPlaceholderId(randomBytes(32).toString('base64'))).toBe(false)
      expect(isPlaceholderId(randomUUID())).toBe(false)
      expect(isPlaceholderId(randomBytes(8).toString('hex'))).toBe(false)
    }
  })

  it('is reported with its field, and is no identifier of a phone', () => {
    const ids = { device_id: 'unknown', session_id: 's', user_id: 'null', account_id: undefined }
    expect(findPlaceholderIds(ids)).toEqual(['device_id', 'user_id'])
    const empty = hash('sha256', '', 'hex')
    const hashes = { device_id: empty, session_id: 's', user_id: empty, account_id: undefined }
    expect(findPlaceholderIds(hashes)).toEqual(['device_id', 'user_id'])
    const device = { identifiers: { media_drm_id: hash('md5', 'null', 'base64'), real: 'a-1' } }
    expect(readSentIdentifiers({ device } as unknown as Telemetry)).toEqual({
      identifiers: [['real', 'a-1']],
      leftOut: [{ name: 'media_drm_id', fault: 'placeholder' }],
    })
  })
})
