// What the console says of an entry that no edge can act on, for want of network data.
import { expect, it } from 'vitest'
import type { NetworkFileStatus, NetworkMember } from '#shared/core/network/network-status.ts'
import {
  isOfConnections,
  toMissingData,
} from '../../../services/console/web/pages/lists/missing-data.ts'

const file = (gives: NetworkMember[], state: NetworkFileStatus['state'] = 'in_use') => {
  return { gives, state }
}
const off = { is_on: false, data: [] }
const empty = { is_on: true, data: [] }

it.each([
  ['a network without the folder', 'network', off, 'Network data is off'],
  ['an operator without the folder', 'asn', off, 'Network data is off'],
  ['a country without the folder', 'country', off, 'Network data is off'],
  ['a network with an empty folder', 'network', empty, null],
  ['an operator with an empty folder', 'asn', empty, 'the operator of an address'],
  ['a country with operators alone', 'country', { is_on: true, data: [file(['asn'])] }, 'country'],
  ['an operator with operators alone', 'asn', { is_on: true, data: [file(['asn'])] }, null],
  [
    'a country in a broken file',
    'country',
    { is_on: true, data: [file(['country'], 'broken')] },
    'the country of an address',
  ],
  [
    'a country in a file whose older version is used',
    'country',
    { is_on: true, data: [file(['country'], 'older_in_use')] },
    null,
  ],
] as const)('%s', (_, kind, status, expected) => {
  const text = toMissingData(kind, status)
  if (expected === null) expect(text).toBeNull()
  else expect(text).toContain(expected)
})

it('is asked of no device and no user', () => {
  expect(['device', 'user', 'network', 'asn', 'country'].map(isOfConnections)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ])
})
