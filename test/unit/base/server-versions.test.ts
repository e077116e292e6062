import { expect, it } from 'vitest'
import { describeOldServer, isOlder } from '#shared/core/base/server-versions.ts'

it.each([
  ['2.15.1', '2.9', false],
  ['2.9.10', '2.9', false],
  ['2.8.4', '2.9', true],
  ['2.9.10', '2.10', true],
  ['v2.10.0-RC.1', '2.10', false],
  ['18.4 (Debian 18.4-1)', '15', false],
  ['14.9', '15', true],
  ['25.2.9.1', '25.3', true],
  ['26.1', '25.3', false],
  ['25', '25.3', true],
  ['unknown', '25.3', false],
])('%s is older than %s: %s', (version, oldest, older) => {
  expect(isOlder(version, oldest)).toBe(older)
})

it('an old server is named with the version that is needed', () => {
  expect(describeOldServer('Postgres', '14.9')).toBe('has version 14.9; 15 or newer is needed')
  expect(describeOldServer('Postgres', '15.1')).toBeNull()
})
