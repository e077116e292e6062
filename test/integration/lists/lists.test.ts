/**
 * Allow and deny lists on real servers, from the admin API to the answers of two edges: a change is
 * live at every edge within a second, ends with its expiry, reaches no other tenant, and survives
 * the loss of the directory. An edge with a shard that no console wrote refuses the tenant.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listEntriesMax } from '#shared/core/base/limits/lists.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { listKey, syncedKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { removeExpiredListEntries } from '#shared/io/lists/list-store.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { ConsoleRig } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { bodyOf, type EdgeRig, send, type TestEdge } from '../../support/telemetry/edge-rig.ts'
import { type ListRig, type ListTenant, startListRig } from '../../support/telemetry/list-rig.ts'

let lists: ListRig
let edges: EdgeRig
let rig: ConsoleRig
let both: TestEdge[]
let call: ListRig['call']
/** Shifts the wall clock of the second edge. */
let aheadMs = 0
type OwnTenant = ListTenant
let acme: OwnTenant
let other: OwnTenant

beforeAll(async () => {
  lists = await startListRig(() => Date.now() + aheadMs)
  ;({ edges, both, call, console: rig } = lists)
})
afterAll(async () => {
  await lists?.stop()
})
beforeEach(async () => {
  acme = await lists.makeTenant()
  other = await lists.makeTenant()
})
afterEach(() => {
  aheadMs = 0
})

type Entry = { list?: string; kind?: string; id?: string; reason?: string; expires_at?: string }

async function add(tenant: OwnTenant, entry: Entry): Promise<string> {
  const full = { list: 'deny', kind: 'device', id: 'phone', reason: 'chargeback', ...entry }
  const { status, body } = await call('POST', `/tenants/${tenant.tenantId}/lists`, full)
  expect({ status, body }).toMatchObject({
    status: 201,
    body: { created_by: 'admin', id: full.id },
  })
  return body.entry_id
}

const remove = (tenant: OwnTenant, entryId: string) =>
  call('DELETE', `/tenants/${tenant.tenantId}/lists/${entryId}`)

const risky = {
  root: { su_binary: true },
  emulator: {},
  debugger: {},
  tamper: {},
  ecosystem: {},
  network: {},
}

/** What each edge answers about a device: its score, action and list flag. */
async function answers(tenant: OwnTenant, more: Record<string, unknown> = {}) {
  return Promise.all(
    both.map(async (edge) => {
      const body = bodyOf(tenant.tenantId, { device_id: 'phone', signals: risky, ...more })
      const answer = await send(edge, body, { secret: tenant.secret })
      if (answer.status !== 200) return answer.status
      const { rasp_score: score, rasp_action: action, flags } = answer.body
      const listed = (flags as string[]).find((flag) => flag.endsWith('_LISTED')) ?? null
      return { score, action, listed }
    }),
  )
}

const plain = { score: 40, action: 'REVIEW', listed: null }
const denied = { score: 40, action: 'BLOCK', listed: 'DENY_LISTED' }
const allowed = { score: 40, action: 'ALLOW', listed: 'ALLOW_LISTED' }

/** Every edge comes to answer so. */
async function become(
  tenant: OwnTenant,
  expected: unknown,
  more: Record<string, unknown> = {},
): Promise<void> {
  await until(
    `both edges answer ${JSON.stringify(expected)}`,
    async () =>
      JSON.stringify(await answers(tenant, more)) === JSON.stringify([expected, expected]),
  )
}

describe('a change of a list', () => {
  it('is live at every edge, and touches no other tenant, device or user', async () => {
    const entryId = await add(acme, { list: 'deny' })
    await become(acme, denied)
    expect(await answers(other)).toEqual([plain, plain])
    expect(await answers(acme, { device_id: 'another' })).toEqual([plain, plain])
    expect(await answers(acme, { device_id: 'another', user_id: 'phone' })).toEqual([plain, plain])
    expect((await remove(acme, entryId)).status).toBe(200)
    await become(acme, plain)
    expect((await remove(acme, entryId)).body.code).toBe('list_entry_not_found')
  })

  it('of users holds on every device, by user_id and account_id', async () => {
    await add(acme, { list: 'allow', kind: 'user', id: 'anna' })
    await become(acme, allowed, { user_id: 'anna' })
    expect(await answers(acme, { account_id: 'anna', device_id: 'x' })).toEqual([allowed, allowed])
    expect(await answers(acme, { user_id: 'ben' })).toEqual([plain, plain])
  })

  it('lets deny beat allow, whatever was added first', async () => {
    await add(acme, { list: 'allow' })
    await become(acme, allowed)
    const deny = await add(acme, { list: 'deny', kind: 'user', id: 'anna' })
    await become(acme, denied, { user_id: 'anna' })
    await add(acme, { list: 'deny' })
    await become(acme, denied)
    await remove(acme, deny)
    expect(await answers(acme, { user_id: 'anna' })).toEqual([denied, denied])
  })

  it('ends at its expiry by the clock of the edge', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    await add(acme, { expires_at: expiresAt })
    await become(acme, denied)
    aheadMs = 3_600_001
    expect(await answers(acme)).toEqual([denied, plain])
  })

  it('is in the stored event: the entry, its kind and reason, and never who made it', async () => {
    const entryId = await add(acme, {})
    await become(acme, denied)
    const stored = (await edges.readStored()).filter((event) => event.tenant_id === acme.tenantId)
    const event = stored.at(-1)!
    expect(event).toMatchObject({ rasp_score: 40, rasp_action: 'BLOCK' })
    expect(event.reasons.reduce((sum, { weight }) => sum + weight, 0)).toBe(40)
    expect(event.reasons.at(-1)).toEqual({
      code: 'DENY_LISTED',
      weight: 0,
      evidence: { entry_id: entryId, kind: 'device', reason: 'chargeback' },
    })
  })
})

describe('the directory', () => {
  const shardsOf = async (tenant: OwnTenant) => {
    const { rows } = await rig.postgres.query<{ shard: number }>(
      'select shard from list_shards where tenant_id = $1',
      [tenant.tenantId],
    )
    return rows.map(({ shard }) => listKey(tenant.tenantId, shard))
  }

  it('gets its lists back when they were removed, forged or lost with the bucket', async () => {
    await add(acme, {})
    await become(acme, denied)
    const bucket = await openTenantsBucket(rig.nats)
    const [key] = await shardsOf(acme)
    const genuine = (await bucket.get(key!))!.string()
    for (const harm of [
      () => bucket.put(key!, genuine.replace(/"entries":\[.*\]/, '"entries":[]')),
      // Put back at another revision.
      () => bucket.put(key!, genuine),
      () => bucket.delete(key!),
    ]) {
      await harm()
      await until('both edges refuse', async () =>
        (await answers(acme)).every((answer) => answer === 503),
      )
      expect(await answers(other)).toEqual([plain, plain])
      await until('the lists are back', async () => {
        await rig.projection.repair()
        return JSON.stringify(await answers(acme)) === JSON.stringify([denied, denied])
      })
    }
    await bucket.destroy()
    const seen = new Set<string>()
    await until('the bucket is back', async () => {
      await rig.projection.repair()
      const found = await answers(acme)
      for (const one of found) seen.add(typeof one === 'number' ? `${one}` : String(one.action))
      return JSON.stringify(found) === JSON.stringify([denied, denied])
    })
    // While it was filled again no edge served the tenant without its list.
    expect([...seen].filter((one) => one !== '503').sort()).toEqual(['BLOCK'])
    await until('the new bucket is complete', async () => {
      await rig.projection.repair()
      return (await (await openTenantsBucket(rig.nats)).get(syncedKey)) !== null
    })
  })

  it('serves no tenant at an edge that started after shards were purged, until they are back', async () => {
    await add(acme, {})
    await become(acme, denied)
    const bucket = await openTenantsBucket(rig.nats)
    await until('its entry counts its shards', async () =>
      (await bucket.get(tenantKey(acme.tenantId)))!.string().includes('"list_shards":1'),
    )
    for (const key of await shardsOf(acme)) {
      await rig.nats.manager.streams.purge(`KV_${tenantsBucket}`, {
        filter: `$KV.${tenantsBucket}.${key}`,
      })
    }
    const late = await edges.startEdge()
    const before = both
    try {
      both = [late]
      expect(await answers(acme)).toEqual([503])
      expect(await answers(other)).toEqual([plain])
      await until('the lists are back', async () => {
        await rig.projection.repair()
        return JSON.stringify(await answers(acme)) === JSON.stringify([denied])
      })
    } finally {
      both = before
      await late.close()
    }
  })

  it('forgets the lists of a removed tenant, not those of one that Postgres forgot', async () => {
    await add(acme, {})
    await become(acme, denied)
    const [key] = await shardsOf(acme)
    await rig.postgres.query('delete from tenants where tenant_id = $1', [acme.tenantId])
    const bucket = await openTenantsBucket(rig.nats)
    // Postgres may have been put back: until an operator has recovered it, the edges keep them.
    const kept = (await bucket.get(key!))!.string()
    for (let round = 0; round < 4; round++) await rig.projection.repair()
    expect((await bucket.get(key!))!.string()).toBe(kept)
    await insertAudit(rig.postgres, {
      actor: 'test',
      tenantId: acme.tenantId,
      action: 'tenant.creation_undone',
    })
    // As a console that starts: the removal and its audit entry are one transaction.
    rig.projection.stop()
    await until('the shard is cleared', async () => {
      await rig.projection.repair()
      return (await bucket.get(key!))!.string().endsWith('\nnull')
    })
  })
})

describe('entries', () => {
  it('are listed newest first, by filters and pages, with the exact total', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e'].map((letter) => `device-${letter}`)
    for (const id of ids) await add(acme, { id, list: id > 'device-c' ? 'allow' : 'deny' })
    await add(acme, { kind: 'user', id: 'device-a', reason: 'friend', list: 'allow' })
    await add(other, { id: 'device-z' })
    const path = `/tenants/${acme.tenantId}/lists`
    const idsOf = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id)
    const first = (await call('GET', `${path}?kind=device&limit=2`)).body
    expect(first).toMatchObject({ total: 5, limit: 2 })
    const second = (await call('GET', `${path}?kind=device&limit=2&cursor=${first.next_cursor}`))
      .body
    const third = (await call('GET', `${path}?kind=device&limit=2&cursor=${second.next_cursor}`))
      .body
    expect([...idsOf(first), ...idsOf(second), ...idsOf(third)]).toEqual(ids.reverse())
    expect(third.next_cursor).toBeNull()
    const stolen = `/tenants/${other.tenantId}/lists?kind=device&cursor=${first.next_cursor}`
    expect((await call('GET', stolen)).status).toBe(400)
    expect((await call('GET', `${path}?list=allow&id=device-a`)).body).toMatchObject({ total: 1 })
    expect((await call('GET', `${path}?reason=friend&state=active`)).body.total).toBe(1)
    expect((await call('GET', `${path}?state=expired`)).body).toMatchObject({ total: 0, data: [] })
  })

  it('are replaced by one of the same id on the same list, which keeps its entry_id', async () => {
    const first = await add(acme, { reason: 'one' })
    expect(await add(acme, { reason: 'two', expires_at: '2099-01-01' })).toBe(first)
    const { body } = await call('GET', `/tenants/${acme.tenantId}/lists`)
    expect(body).toMatchObject({
      total: 1,
      data: [{ reason: 'two', expires_at: '2099-01-01T00:00:00.000Z', expired: false }],
    })
  })

  it('keep their expiry when they are replaced without one, and lose it with null alone', async () => {
    const path = `/tenants/${acme.tenantId}/lists`
    const expiresAt = '2099-01-01T00:00:00.000Z'
    const again = async (more: object) => {
      const entry = { list: 'deny', kind: 'device', id: 'banned-for-a-while', reason: 'again' }
      const { status, body } = await call('POST', path, { ...entry, ...more })
      expect(status).toBe(201)
      return body.expires_at
    }
    expect(await again({})).toBeNull()
    expect(await again({ expires_at: expiresAt })).toBe(expiresAt)
    expect(await again({})).toBe(expiresAt)
    expect(await again({ expires_at: null })).toBeNull()
    expect(await again({})).toBeNull()
    // An entry that has expired is over: a new one is for good.
    expect(await again({ expires_at: expiresAt })).toBe(expiresAt)
    await rig.postgres.query(
      `update list_entries set expires_at = now() - interval '1 second' where id = $1`,
      ['banned-for-a-while'],
    )
    expect(await again({})).toBeNull()
  })

  it('are refused with a placeholder id, a sentence as the reason, or an expiry in the past', async () => {
    const path = `/tenants/${acme.tenantId}/lists`
    const full = { list: 'deny', kind: 'device', id: 'phone', reason: 'chargeback' }
    for (const wrong of [
      { id: 'unknown' },
      { reason: 'Because Of Fraud' },
      { expires_at: '2020-01-01' },
      { list: 'grey' },
      { id: '' },
    ]) {
      expect((await call('POST', path, { ...full, ...wrong })).status).toBe(400)
    }
    expect((await call('POST', '/tenants/nobody/lists', full)).body.code).toBe('tenant_not_found')
  })

  it('are audited without the id', async () => {
    const entryId = await add(acme, { id: 'phone-of-anna' })
    await remove(acme, entryId)
    const { body } = await call('GET', `/tenants/${acme.tenantId}/audit`)
    expect(body.data.slice(0, 2)).toMatchObject([
      { action: 'list_entry.removed', actor: 'admin', before: { entry_id: entryId } },
      { action: 'list_entry.added', actor: 'admin', after: { reason: 'chargeback' } },
    ])
    expect(JSON.stringify(body)).not.toContain('phone-of-anna')
  })

  it('of one tenant are bounded', async () => {
    await rig.postgres.query(
      `insert into list_entries (entry_id, tenant_id, list, kind, id, reason, created_by, shard)
       select 'lst_' || left(md5($1 || n), 22), $1, 'allow', 'user', 'user-' || n, 'x', 'test', n % 16
       from generate_series(1, $2::integer) as n`,
      [acme.tenantId, listEntriesMax],
    )
    const full = { list: 'allow', kind: 'user', reason: 'x' }
    const path = `/tenants/${acme.tenantId}/lists`
    expect((await call('POST', path, { ...full, id: 'one-more' })).body.code).toBe('conflict')
    // One that is there can still be replaced, and full lists reach the edges.
    expect((await call('POST', path, { ...full, id: 'user-7' })).status).toBe(201)
    await become(acme, allowed, { user_id: 'user-7' })
    expect(
      (await call('POST', `/tenants/${other.tenantId}/lists`, { ...full, id: 'u' })).status,
    ).toBe(201)
  })

  it('that have expired are removed, and those of an erased subject, also at the edges', async () => {
    const soon = new Date(Date.now() + 600_000).toISOString()
    await add(acme, { id: 'soon', expires_at: soon })
    await add(acme, { id: 'phone' })
    await add(acme, { id: 'phone', list: 'allow' })
    await become(acme, denied)
    const removed = await rig.postgres.transaction((tx) =>
      removeExpiredListEntries(tx, Date.parse(soon), 100),
    )
    expect(removed).toBe(1)
    const subject = { tenantId: acme.tenantId, kind: 'device', id: 'phone' } as const
    await eraseAlerts(rig.postgres, { subject, eventIds: [], sessionIds: [] })
    await become(acme, plain)
    const { body } = await call('GET', `/tenants/${acme.tenantId}/lists`)
    expect(body.total).toBe(0)
    await until('no edge holds an entry of it', async () => {
      const bucket = await openTenantsBucket(rig.nats)
      const { rows } = await rig.postgres.query<{ shard: number }>(
        'select shard from list_shards where tenant_id = $1',
        [acme.tenantId],
      )
      const texts = await Promise.all(
        rows.map(async ({ shard }) => (await bucket.get(listKey(acme.tenantId, shard)))!.string()),
      )
      return texts.every((text) => text.includes('"entries":[]'))
    })
  })
})
