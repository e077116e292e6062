import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { readTestRoots } from '#shared/io/attestation/test-roots.ts'
import { testRoots, testRootsFile } from '../../support/installs/evidence-fixtures.ts'

const folder = mkdtempSync(join(tmpdir(), 'roots-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'roots.json')

it('test roots count beside the built-in ones for sandbox tenants, and not for live ones', () => {
  writeFileSync(file, testRootsFile)
  const findRoots = readTestRoots(file)
  expect(findRoots('live')).toEqual(attestationRoots)
  const { keyAttestation, appAttest } = findRoots('sandbox')
  expect(keyAttestation.slice(0, -1)).toEqual(attestationRoots.keyAttestation)
  expect(keyAttestation.at(-1)).toMatchObject({
    publicKeyInfo: testRoots.keyAttestation[0]!.publicKeyInfo,
    name: 'test: Test Android root',
  })
  expect(appAttest).toHaveLength(attestationRoots.appAttest.length + 1)
  expect(readTestRoots(undefined)('sandbox')).toEqual(attestationRoots)
})

it.each([
  ['is not JSON', 'x'],
  [
    'has another form at key_attestation.0.public_key',
    '{"key_attestation":[{"name":"a","public_key":"AAAA"}]}',
  ],
  ['has another form', '{"roots":[]}'],
  ['is larger than 64 KiB', ' '.repeat(70_000)],
])('a file of test roots that %s stops the start', (why, text) => {
  writeFileSync(file, text)
  expect(() => readTestRoots(file)).toThrow(why)
})
