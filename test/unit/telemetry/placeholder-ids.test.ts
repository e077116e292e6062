/** Ids that mean "no id" are recognised, and ids of real installs are not. */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { findPlaceholderIds, isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'

describe('a placeholder id', () => {
  it.each([
    ...['unknown', 'Unknown', ' UNKNOWN ', 'null', '(null)', '<null>', 'undefined', 'nil', 'none'],
    ...['N/A', 'n.a.', 'NaN', '-', '--', ' ', '0', '000000000000000', '[object Object]'],
    ...['00000000-0000-0000-0000-000000000000', '{00000000-0000-0000-0000-000000000000}'],
    ...['ffffffff-ffff-ffff-ffff-ffffffffffff', '00:00:00:00:00:00', '02:00:00:00:00:00'],
    ...['9774d56d682e549c', '9774D56D682E549C', '0123456789ABCDEF', 'unknown-device', 'device_id'],
    ...['anonymous', 'Guest', 'xxxx-xxxx'],
  ])('is recognised: %j', (id) => {
    expect(isPlaceholderId(id)).toBe(true)
  })

  it.each([
    ...['1', 'a', 'x', 'device-1', 'test-allow', 'user', 'unknown-7', '東京', 'nina', 'f', 'f00'],
    ...['00000000-0000-0000-0000-000000000001', '02:00:00:00:00:01', `unknown${' '.repeat(90)}`],
  ])('is not recognised: %j', (id) => {
    expect(isPlaceholderId(id)).toBe(false)
  })

  it('is never a random id', () => {
    for (let n = 0; n < 1_000; n++) {
      expect(isPlaceholderId(randomUUID())).toBe(false)
      expect(isPlaceholderId(randomBytes(8).toString('hex'))).toBe(false)
    }
  })

  it('is reported with its field', () => {
    const ids = { device_id: 'unknown', session_id: 's', user_id: 'null', account_id: undefined }
    expect(findPlaceholderIds(ids)).toEqual(['device_id', 'user_id'])
  })
})
