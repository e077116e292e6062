/**
 * The record of a rotation, on real servers: the confirmations of each edge are visible during and
 * after it, and the operator who rotated gets the new credentials even after leaving the page.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { rotationMaxMs } from '#shared/core/base/limits/tenants.ts'
import type { RotationProgress } from '#shared/core/tenants/rotation-progress.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { removeExpiredRotationKeys } from '#shared/io/tenants/rotation-store.ts'
import type { RotationStage } from '../../../services/console/tenants/rotation.ts'
import {
  type Answer,
  createOperatorsRig,
  type Member,
  type OperatorsRig,
} from '../../support/http/operators-rig.ts'
import { until } from '../../support/process/until.ts'

type Keys = { tenant_id: string; hmac_secret: string; webhook_secret: string }
type Rotation = RotationProgress & {
  rotation_id: string
  started_by: string
  state: string
  new_keys: { until: string; yours: boolean } | null
}

let rig: OperatorsRig
let ada: Member
let bob: Member
let tenantId: string

beforeAll(async () => {
  rig = await createOperatorsRig()
  await rig.startEdge()
  ada = await rig.join('admin')
  bob = await rig.join('admin')
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const body = { tenant_id: tenantId }
  await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body })
})

/** A session with a fresh step-up. */
const sessionOf = (member: Member) => rig.openSession(member.operatorId, { steppedUp: true })
const keysOf = ({ body }: Answer) => body as unknown as Keys

async function read(member: Member): Promise<Rotation | null> {
  const cookie = await sessionOf(member)
  const answer = await rig.must(200, 'GET', `/tenants/${tenantId}/rotation`, { cookie })
  return (answer.body as unknown as { rotation: Rotation | null }).rotation
}

const rotateAs = async (member: Member, of: object = {}) =>
  rig.call('POST', `/tenants/${tenantId}/rotate`, {
    cookie: await sessionOf(member),
    body: {},
    ...of,
  })
const keysAs = async (member: Member, method: 'POST' | 'DELETE' = 'POST') =>
  rig.call(method, `/tenants/${tenantId}/rotation/keys`, {
    cookie: await sessionOf(member),
    ...(method === 'POST' ? { body: {} } : {}),
  })

describe('a rotation', () => {
  it('is recorded with the confirmations of each edge for both steps, with times', async () => {
    expect(await read(ada)).toBeNull()
    const startedMs = Date.now()
    const rotated = await rotateAs(ada)
    expect(rotated.status).toBe(200)
    const rotation = (await read(bob))!
    expect(rotation).toMatchObject({
      started_by: ada.email,
      state: 'done',
      step: 'new_on',
      failure: null,
    })
    const { confirmed_edges: confirmed } = rotated.body as unknown as { confirmed_edges: string[] }
    expect(confirmed).toHaveLength(1)
    expect(rotation.edges.map(({ edge_id: id }) => id)).toEqual(confirmed)
    const { old_off: off, new_on: on } = rotation.edges[0]!
    expect([off?.outcome, on?.outcome]).toEqual(['confirmed', 'confirmed'])
    const times = [startedMs, Date.parse(off!.at), Date.parse(on!.at), Date.now()]
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(rotation.duration_ms).toBeGreaterThanOrEqual(0)
  })

  it('shows its progress while it runs, and a silent edge until its lease ends', async () => {
    const silent = await rig.startEdge()
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const checkpoint = async (stage: RotationStage) => {
      if (stage === 'off_everywhere') await held
    }
    const app = await rig.createApp({ checkpoint })
    await silent.nats.connection.close()
    const rotating = rotateAs(ada, { app })
    await until('the silent edge is waited for', async () => {
      const edges = (await read(bob))?.edges ?? []
      return edges.length === 2 && edges.some(({ old_off: off }) => off === null)
    })
    expect(await read(bob)).toMatchObject({
      state: 'running',
      step: 'old_off',
      duration_ms: null,
      new_keys: null,
    })
    await until('its lease has run out', async () => {
      const edges = (await read(bob))?.edges ?? []
      return edges.some(({ old_off: off }) => off?.outcome === 'lease_expired')
    })
    const waiting = (await read(bob))!
    expect(waiting.edges.map(({ old_off: off }) => off?.outcome).sort()).toEqual([
      'confirmed',
      'lease_expired',
    ])
    expect(waiting.edges.map(({ new_on: on }) => on)).toEqual([null, null])
    release()
    expect((await rotating).status).toBe(200)
    expect(await read(bob)).toMatchObject({ state: 'done', step: 'new_on' })
    await silent.close()
  })

  it('that fails shows the reason, and returns no keys', async () => {
    const directory = { ...rig.deps.directory, project: () => Promise.reject(new Error('away')) }
    const app = await rig.createApp({ directory })
    const { status, body } = await rotateAs(ada, { app })
    expect(status).toBe(503)
    expect(await read(ada)).toMatchObject({
      state: 'failed',
      failure: body.detail,
      new_keys: null,
    })
    expect((await keysAs(ada)).status).toBe(409)
  })

  it('whose console has ended is lost, and does not stay running', async () => {
    await rotateAs(ada)
    await rig.postgres.query(
      `update rotations set state = 'running', keys_sealed = null, keys_until = null,
         started_at = now() - $2 * interval '1 millisecond' where tenant_id = $1`,
      [tenantId, rotationMaxMs + 1_000],
    )
    expect(await read(ada)).toMatchObject({ state: 'lost', new_keys: null })
  })
})

describe('the new credentials of a rotation', () => {
  it('are kept only for the operator who rotated, until acknowledged', async () => {
    const rotated = keysOf(await rotateAs(ada))
    expect((await read(ada))?.new_keys?.yours).toBe(true)
    expect((await read(bob))?.new_keys?.yours).toBe(false)
    const { tenant_id, hmac_secret, webhook_secret } = rotated
    for (let times = 0; times < 2; times++) {
      const fetched = await keysAs(ada)
      expect(fetched.status).toBe(200)
      expect(fetched.body).toEqual({ tenant_id, hmac_secret, webhook_secret })
    }
    for (const method of ['POST', 'DELETE'] as const) {
      const refused = await keysAs(bob, method)
      expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    }
    const path = `/tenants/${tenantId}/rotation/keys`
    const byToken = await rig.call('POST', path, { token: rig.adminToken, body: {} })
    expect(byToken.status).toBe(403)
    const audit = await rig.must(200, 'GET', `/tenants/${tenantId}/audit`, {
      token: rig.adminToken,
    })
    expect(
      audit.body.data.filter(({ action }) => action === 'tenant.new_keys_fetched'),
    ).toHaveLength(2)
    expect((await keysAs(ada, 'DELETE')).status).toBe(200)
    expect((await keysAs(ada)).status).toBe(409)
    expect((await read(ada))?.new_keys).toBeNull()
  })

  it('stay when another rotation cannot begin', async () => {
    const { hmac_secret: secret } = keysOf(await rotateAs(ada))
    const directory = { ...rig.deps.directory, connected: () => false }
    const app = await rig.createApp({ directory })
    expect((await rotateAs(bob, { app })).status).toBe(503)
    expect(await read(ada)).toMatchObject({ started_by: ada.email, state: 'done' })
    expect(keysOf(await keysAs(ada)).hmac_secret).toBe(secret)
  })

  it('need a step-up, are sealed in storage, and expire', async () => {
    const { hmac_secret: secret } = keysOf(await rotateAs(ada))
    const cookie = await rig.openSession(ada.operatorId)
    const path = `/tenants/${tenantId}/rotation/keys`
    const refused = await rig.call('POST', path, { cookie, body: {} })
    expect(refused.body.code).toBe('step_up_required')
    const find = async () =>
      (
        await rig.postgres.query<{ text: string; sealed: string | null }>(
          'select to_jsonb(r)::text as text, keys_sealed as sealed from rotations r where tenant_id = $1',
          [tenantId],
        )
      ).rows[0]!
    const { text, sealed } = await find()
    expect(sealed).toMatch(/^v2\./)
    expect(text).not.toContain(secret)
    await removeExpiredRotationKeys(rig.postgres)
    expect((await find()).sealed).toBe(sealed)
    await rig.postgres.query('update rotations set keys_until = now() where tenant_id = $1', [
      tenantId,
    ])
    expect((await read(ada))?.new_keys).toBeNull()
    expect((await keysAs(ada)).status).toBe(409)
    await removeExpiredRotationKeys(rig.postgres)
    expect((await find()).sealed).toBeNull()
  })

  it('are lost once MASTER_KEY was replaced, with that reason', async () => {
    await rotateAs(ada)
    const sealer = createSealer([randomBytes(32).toString('base64')])
    const app = await rig.createApp({ sealer })
    const path = `/tenants/${tenantId}/rotation/keys`
    const answer = await rig.call('POST', path, { cookie: await sessionOf(ada), body: {}, app })
    expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
  })

  it('are not kept for the admin token, whose caller has them in the answer', async () => {
    const path = `/tenants/${tenantId}/rotate`
    const rotated = await rig.must(200, 'POST', path, { token: rig.adminToken, body: {} })
    expect(keysOf(rotated).hmac_secret).toMatch(/^.{43}/)
    expect(await read(ada)).toMatchObject({ started_by: 'admin', state: 'done', new_keys: null })
  })
})
