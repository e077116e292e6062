/**
 * Lists of networks, operators and countries on real servers: from the admin API over PostgreSQL
 * and the directory to the copies of two edges. They change, expire and come back apart from the
 * lists of devices and users, which no fault of theirs may touch and which an edge of the release
 * before goes on to read.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listEntriesMax, listedConnectionsMax } from '#shared/core/base/limits/lists.ts'
import type { ListedConnection } from '#shared/core/lists/list-entry.ts'
import { findListDecision } from '#shared/core/lists/lists.ts'
import { parseAddress } from '#shared/core/network/address.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { connectionListKey, listKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { removeExpiredListEntries } from '#shared/io/lists/list-store.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { until } from '../../support/process/until.ts'
import { bodyOf, send, type TestEdge } from '../../support/telemetry/edge-rig.ts'
import { type ListRig, type ListTenant, startListRig } from '../../support/telemetry/list-rig.ts'

let rig: ListRig
let acme: ListTenant
let other: ListTenant

beforeAll(async () => {
  rig = await startListRig()
})
afterAll(async () => {
  await rig?.stop()
})
beforeEach(async () => {
  acme = await rig.makeTenant()
  other = await rig.makeTenant()
})

const listsPath = ({ tenantId }: ListTenant) => `/tenants/${tenantId}/lists`
type Entry = { list?: string; kind?: string; id?: string; reason?: string; expires_at?: string }
const full = { list: 'deny', kind: 'network', id: '8.8.8.0/24', reason: 'abuse' }
const post = (tenant: ListTenant, entry: Entry) =>
  rig.call('POST', listsPath(tenant), { ...full, ...entry })

async function add(tenant: ListTenant, entry: Entry): Promise<string> {
  const { status, body } = await post(tenant, entry)
  expect({ status, body }).toMatchObject({ status: 201, body: { created_by: 'admin' } })
  return body.entry_id
}
const remove = (tenant: ListTenant, entryId: string) =>
  rig.call('DELETE', `${listsPath(tenant)}/${entryId}`)

const from = (address: string, more: Omit<ListedConnection, 'words'> = {}): ListedConnection => ({
  words: parseAddress(address)!,
  ...more,
})

/** What the copy of an edge makes of a connection: the entry that decides, and that silences. */
function decide(edge: TestEdge, { tenantId }: ListTenant, connection: ListedConnection) {
  const lists = edge.directory.find(tenantId)?.lists
  if (!lists?.usable()) return 'unusable'
  const { decides, silences } = findListDecision(
    lists,
    { device_id: 'phone' },
    Date.now(),
    connection,
  )
  return [decides?.entryId ?? null, silences?.entryId ?? null]
}
/** Every edge comes to this decision. */
const become = (tenant: ListTenant, connection: ListedConnection, wanted: unknown) =>
  until(`both edges decide ${JSON.stringify(wanted)}`, async () => {
    const found = rig.both.map((edge) => decide(edge, tenant, connection))
    return found.every((one) => JSON.stringify(one) === JSON.stringify(wanted))
  })
const statuses = (tenant: ListTenant) =>
  Promise.all(
    rig.both.map(async (edge) => {
      const body = bodyOf(tenant.tenantId, { device_id: 'phone' })
      const { status, body: answer } = await send(edge, body, { secret: tenant.secret })
      return status === 200 ? answer.rasp_action : status
    }),
  )

describe('an entry of a connection', () => {
  it('is at every edge by network, operator and country, and at no other tenant', async () => {
    const network = await add(acme, {})
    const asn = await add(acme, { kind: 'asn', id: 'AS64500' })
    const country = await add(acme, { kind: 'country', id: 'de' })
    const office = await add(acme, { list: 'allow', id: '2a00:1450::/32', reason: 'office' })
    await become(acme, from('8.8.8.8'), [network, null])
    await become(acme, from('9.9.9.9', { asn: 64_500 }), [asn, null])
    await become(acme, from('9.9.9.9', { country: 'DE' }), [country, null])
    await become(acme, from('2a00:1450::8', { country: 'DE' }), [country, office])
    await become(other, from('8.8.8.8'), [null, null])
    await remove(acme, network)
    await become(acme, from('8.8.8.8'), [null, null])
    expect((await remove(acme, network)).body.code).toBe('list_entry_not_found')
  })

  it('is kept in its one spelling, is found by any, and is replaced under it', async () => {
    const first = await add(acme, { id: '::ffff:8.8.8.0/120' })
    expect(await add(acme, { id: '8.8.8.0/24', reason: 'again' })).toBe(first)
    await add(acme, { kind: 'asn', id: 'as64500' })
    await add(acme, { kind: 'country', id: 'de' })
    const path = listsPath(acme)
    const { body } = await rig.call('GET', path)
    expect(body.data.map(({ kind, id }: Entry) => [kind, id])).toEqual([
      ['country', 'DE'],
      ['asn', '64500'],
      ['network', '8.8.8.0/24'],
    ])
    for (const query of [
      'kind=network&id=%3A%3Affff%3A8.8.8.0%2F120',
      'kind=asn&id=AS64500',
      'kind=country&id=de',
      'id=8.8.8.0%2F24',
    ]) {
      expect((await rig.call('GET', `${path}?${query}`)).body.total).toBe(1)
    }
    const wrong = await rig.call('GET', `${path}?kind=network&id=8.8.8.8%2F24`)
    expect(wrong).toMatchObject({ status: 400, body: { code: 'invalid_query' } })
    expect(wrong.body.errors[0].message).toContain('the network with this prefix is 8.8.8.0/24')
  })

  it('is refused with the reason where it is none, or would reach too far', async () => {
    for (const [entry, reason] of [
      [{ id: '0.0.0.0/0' }, 'is too wide'],
      [{ id: '8.8.8.8/24' }, 'the network with this prefix is 8.8.8.0/24'],
      [{ id: '10.0.0.0/8' }, 'is in a private network'],
      [{ id: 'phone' }, 'must be a network in CIDR notation'],
      [{ kind: 'asn', id: '0' }, 'must be the number of an operator'],
      [{ kind: 'country', id: 'ZZ' }, 'must be the code of a country'],
    ] as const) {
      const { status, body } = await post(acme, entry)
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_body' })
      expect(body.errors).toEqual([{ path: '$.id', message: expect.stringContaining(reason) }])
    }
    expect((await rig.call('GET', listsPath(acme))).body.total).toBe(0)
  })

  it('is audited with what it is for, unless that may stand for one person', async () => {
    await add(acme, { id: '8.8.8.0/24' })
    await add(acme, { id: '9.9.9.9' })
    await add(acme, { kind: 'country', id: 'DE' })
    const { body } = await rig.call('GET', `/tenants/${acme.tenantId}/audit`)
    const [country, address, network] = body.data.map(({ after }: { after: Entry }) => after)
    expect([country.id, address.id, network.id]).toEqual(['DE', undefined, '8.8.8.0/24'])
    expect(address.id_sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(JSON.stringify(body)).not.toContain('9.9.9.9')
  })

  it('expires, and stays when a device or a user of the same name is erased', async () => {
    const soon = new Date(Date.now() + 600_000).toISOString()
    await add(acme, { id: '9.9.9.0/24', expires_at: soon })
    const kept = await add(acme, {})
    await add(acme, { kind: 'device', id: '8.8.8.0/24' })
    const expire = () =>
      rig.console.postgres.transaction((tx) => removeExpiredListEntries(tx, Date.parse(soon), 100))
    expect(await expire()).toBe(1)
    const subject = { tenantId: acme.tenantId, kind: 'device', id: '8.8.8.0/24' } as const
    await eraseAlerts(rig.console.postgres, { subject, eventIds: [], sessionIds: [] })
    const { body } = await rig.call('GET', listsPath(acme))
    expect(body.data.map((entry: { entry_id: string }) => entry.entry_id)).toEqual([kept])
    await become(acme, from('9.9.9.9'), [null, null])
    await become(acme, from('8.8.8.8'), [kept, null])
  })

  it('is one of a bounded number, and none of it takes room from devices and users', async () => {
    const { postgres } = rig.console
    const fill = (kind: string, count: number, id: string, shard: string) =>
      postgres.query(
        `insert into list_entries (entry_id, tenant_id, list, kind, id, reason, created_by, shard)
         select 'lst_' || left(md5($1 || $3 || n), 22), $1, 'deny', $3, ${id}, 'x', 'test', ${shard}
         from generate_series(1, $2::integer) as n`,
        [acme.tenantId, count, kind],
      )
    await fill('asn', listedConnectionsMax, 'n', 'null')
    const refused = await post(acme, { kind: 'country', id: 'DE' })
    expect(refused).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(refused.body.detail).toContain(`at most ${listedConnectionsMax} entries of networks`)
    // One that is there can still be replaced, and full lists reach the edges.
    const replaced = await add(acme, { kind: 'asn', id: '7' })
    await become(acme, from('8.8.8.8', { asn: 7 }), [replaced, null])
    await add(acme, { kind: 'device', id: 'phone' })
    await fill('user', listEntriesMax - listedConnectionsMax - 1, "'u' || n", 'n % 16')
    const device = await post(acme, { kind: 'device', id: 'one-more' })
    expect(device.body.detail).toContain(`at most ${listEntriesMax} entries.`)
  })
})

describe('the directory', () => {
  const bucketOf = () => openTenantsBucket(rig.console.nats)

  it('has devices and users apart, in shards of the form before, and says what an edge needs', async () => {
    await add(acme, { kind: 'device', id: 'phone' })
    await add(acme, {})
    const bucket = await bucketOf()
    const readKeys = async () => {
      const keys: string[] = []
      for await (const key of await bucket.keys()) if (key.includes(acme.tenantId)) keys.push(key)
      return keys
    }
    const keys = await until('both are there', async () => {
      const found = await readKeys()
      const isList = (key: string) => !key.startsWith(tenantKey(''))
      return found.filter(isList).length === 2 ? found : null
    })
    await until('both edges deny the phone', async () =>
      (await statuses(acme)).every((one) => one === 'BLOCK'),
    )
    const shards = keys.filter((key) => key.startsWith(listKey(acme.tenantId, '')))
    expect(shards).toHaveLength(1)
    const shard = JSON.parse((await bucket.get(shards[0]!))!.string().split('\n')[1]!)
    expect(shard.entries.map((entry: unknown[]) => entry[2])).toEqual(['device'])
    expect(keys).toContain(connectionListKey(acme.tenantId))
    await until('its entry says so', async () =>
      (await bucket.get(tenantKey(acme.tenantId)))!.string().includes('"connection_list":true'),
    )
  })

  it('gets them back when they were forged, put back, removed or purged, and no edge does without', async () => {
    const entryId = await add(acme, {})
    await become(acme, from('8.8.8.8'), [entryId, null])
    const bucket = await bucketOf()
    const key = connectionListKey(acme.tenantId)
    await until('its entry says so', async () =>
      (await bucket.get(tenantKey(acme.tenantId)))!.string().includes('"connection_list":true'),
    )
    const genuine = (await bucket.get(key))!.string()
    for (const harm of [
      () => bucket.put(key, genuine.replace(/"entries":\[.*\]/, '"entries":[]')),
      // Put back at another revision.
      () => bucket.put(key, genuine),
      () => bucket.delete(key),
    ]) {
      await harm()
      await become(acme, from('8.8.8.8'), 'unusable')
      expect(await statuses(acme)).toEqual([503, 503])
      expect(await statuses(other)).toEqual(['ALLOW', 'ALLOW'])
      await until('the list is back', async () => {
        await rig.console.projection.repair()
        return rig.both.every((edge) => decide(edge, acme, from('8.8.8.8'))[0] === entryId)
      })
    }
    await rig.console.nats.manager.streams.purge(`KV_${tenantsBucket}`, {
      filter: `$KV.${tenantsBucket}.${key}`,
    })
    const late = await rig.edges.startEdge()
    try {
      expect(decide(late, acme, from('8.8.8.8'))).toBe('unusable')
      await until('the list is back', async () => {
        await rig.console.projection.repair()
        return decide(late, acme, from('8.8.8.8'))[0] === entryId
      })
    } finally {
      await late.close()
    }
  })

  it('gets what only PostgreSQL knows, after it was complete', async () => {
    const { postgres, projection } = rig.console
    const entryId = await add(acme, {})
    await become(acme, from('8.8.8.8'), [entryId, null])
    // A difference is repaired at its second look, and the write comes back a moment later.
    let quiet = 0
    await until('nothing is left to repair', async () => {
      quiet = (await projection.repair()) === 0 ? quiet + 1 : 0
      return quiet === 10
    })
    // As a projection whose write was lost.
    await postgres.query(
      `with gone as (delete from list_entries where entry_id = $2)
       update connection_lists set version = version + 1, projected_version = version + 1
       where tenant_id = $1`,
      [acme.tenantId, entryId],
    )
    await until('both edges know', async () => {
      await projection.repair()
      return rig.both.every((edge) => decide(edge, acme, from('8.8.8.8'))[0] === null)
    })
  })

  it('forgets that of a removed tenant', async () => {
    const { postgres, projection } = rig.console
    const entryId = await add(acme, {})
    await become(acme, from('8.8.8.8'), [entryId, null])
    await postgres.query('delete from tenants where tenant_id = $1', [acme.tenantId])
    const action = 'tenant.creation_undone'
    await insertAudit(postgres, { actor: 'test', tenantId: acme.tenantId, action })
    // As a console that starts.
    projection.stop()
    const bucket = await bucketOf()
    await until('the list is cleared', async () => {
      await projection.repair()
      return (await bucket.get(connectionListKey(acme.tenantId)))!.string().endsWith('\nnull')
    })
  })
})
