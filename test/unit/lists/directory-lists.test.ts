/**
 * The lists of connections in an edge's copy of the directory: they change whole, and one that is
 * missing, unreadable or another's makes the lists of its tenant unusable, never empty.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { parseAddress } from '#shared/core/network/address.ts'
import type { ConnectionList } from '#shared/core/tenants/directory-entries.ts'
import {
  createDirectoryLists,
  type DirectoryLists,
  type TenantLists,
} from '#shared/io/tenants/directory/tenant-lists.ts'

const office: ConnectionList['entries'][number] = [
  '8.8.8.0/24',
  'allow',
  'network',
  'lst_office',
  'office',
  null,
]
const listOf = (...entries: ConnectionList['entries']): ConnectionList => ({
  tenant_id: 'acme',
  version: 1,
  entries,
})

let directory: DirectoryLists
let lists: TenantLists
beforeEach(() => {
  directory = createDirectoryLists()
  lists = directory.of('acme', { connection_list: true })
})

const found = (address: string, more = {}) =>
  lists
    .findOfConnection({ words: parseAddress(address)!, ...more })
    .map(({ entryId, list, kind, reason, expiresAtMs }) => [
      entryId,
      list,
      kind,
      reason,
      expiresAtMs,
    ])

describe('the list of connections of a tenant', () => {
  it('is found by address, operator and country, and counted', () => {
    const rows = listOf(
      office,
      ['64500', 'deny', 'asn', 'lst_asn', 'abuse', 7],
      ['DE', 'deny', 'country', 'lst_country', 'abuse', null],
    )
    expect(directory.set('acme', null, rows)).toBe(true)
    expect(lists.usable()).toBe(true)
    expect(found('8.8.8.8', { asn: 64_500, country: 'DE' })).toEqual([
      ['lst_office', 'allow', 'network', 'office', null],
      ['lst_asn', 'deny', 'asn', 'abuse', 7],
      ['lst_country', 'deny', 'country', 'abuse', null],
    ])
    expect(found('8.8.9.8', { asn: 64_501, country: 'FR' })).toEqual([])
    expect(directory.count()).toBe(3)
    expect(
      directory.of('globex', {}).findOfConnection({ words: parseAddress('8.8.8.8')! }),
    ).toEqual([])
  })

  it('is replaced whole, and may be empty', () => {
    directory.set('acme', null, listOf(office))
    directory.set('acme', null, { ...listOf(), version: 2 })
    expect([found('8.8.8.8'), lists.usable(), directory.count()]).toEqual([[], true, 0])
  })

  it('is needed where the entry of the tenant says so', () => {
    expect(lists.usable()).toBe(false)
    expect(directory.of('acme', {}).usable()).toBe(true)
    directory.set('acme', null, listOf(office))
    expect(lists.usable()).toBe(true)
    directory.set('acme', null, undefined)
    expect([lists.usable(), directory.count()]).toEqual([false, 0])
  })

  it.each([
    ['of another tenant', { ...listOf(office), tenant_id: 'globex' }],
    ['with a network that is none', listOf(['8.8.8.8/24', 'deny', 'network', 'x', 'y', null])],
    ['with a kind that is none', listOf(['x', 'deny', 'device' as 'asn', 'x', 'y', null])],
    ['that is none', { tenant_id: 'acme' }],
  ])('%s makes the lists unusable until there is another', (_, value) => {
    directory.set('acme', null, listOf(office))
    expect(directory.set('acme', null, value)).toBe(false)
    expect([found('8.8.8.8'), lists.usable(), directory.count()]).toEqual([[], false, 0])
    directory.set('acme', null, listOf(office))
    expect(lists.usable()).toBe(true)
  })

  it('that no console wrote makes them unusable likewise', () => {
    directory.setUnproven('acme', null)
    expect([lists.usable(), directory.of('acme', {}).usable()]).toEqual([false, false])
    directory.set('acme', null, listOf(office))
    expect(lists.usable()).toBe(true)
  })
})
