// Rotation without overlap, on real edges with real leases: two secrets are never valid at once,
// after the answer the old one is invalid everywhere and the new one valid everywhere, and any
// interruption is undone or finished by the next call.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
} from 'vitest'
import { hashApiKey } from '#shared/core/tenants/credentials.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import {
  type RotationDeps,
  type RotationStage,
  rotate,
  undoAbandonedRotations,
} from '../../../services/console/tenants/rotation.ts'
import { type ConsoleRig, startConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { takeLeaseAway } from '../../support/leases/lost-lease.ts'
import { until } from '../../support/process/until.ts'

let rig: ConsoleRig
let edges: TestEdge[]
let tenantId: string
let old: Awaited<ReturnType<typeof createTenant>>

beforeAll(async () => {
  rig = await startConsoleRig()
  edges = await Promise.all([rig.startEdge(), rig.startEdge(), rig.startEdge()])
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  old = await createTenant(rig.deps, {
    tenantId,
    name: '',
    environment: 'sandbox',
    webhookUrl: null,
    actor: 'test',
  })
})

const only = { hmac: false, webhook: false, apiKey: false }
const hmacOnly = () => ({ ...only, hmac: true, tenantId, actor: 'test' })
const judgements = (secret: string) => edges.map((edge) => edge.judge(tenantId, secret))
const everywhere = (verdict: string) => edges.map(() => verdict)

/** The secrets of the tenant that are active or waiting in Postgres, unsealed. */
async function readSecrets(): Promise<{ state: string; secret: string }[]> {
  const { rows } = await rig.postgres.query<{ state: string; sealed: string }>(
    `select state, sealed from tenant_secrets
     where tenant_id = $1 and kind = 'hmac' and state <> 'retired' order by secret_id`,
    [tenantId],
  )
  return rows.map(({ state, sealed }) => ({
    state,
    secret: rig.deps.sealer.unseal(sealed, { tenantId, kind: 'hmac' }),
  }))
}

/** Watches all edges continuously for two secrets that are valid at one time. */
function watchOverlap(candidates: () => Iterable<string>): { end: () => Promise<void> } {
  let on = true
  const overlaps: string[][] = []
  const run = async () => {
    while (on) {
      const working = [...candidates()].filter((secret) => judgements(secret).includes('accepted'))
      if (working.length > 1) overlaps.push(working)
      await pause(1)
    }
  }
  const running = run()
  return {
    end: async () => {
      on = false
      await running
      expect(overlaps).toEqual([])
    },
  }
}

describe('a rotation', () => {
  it('makes the new secret valid everywhere and the old one nowhere, without overlap', async () => {
    expect(judgements(old.hmac_secret)).toEqual(everywhere('accepted'))
    const secrets = new Set([old.hmac_secret])
    const checkpoint = async () => {
      for (const { secret } of await readSecrets()) secrets.add(secret)
    }
    const overlap = watchOverlap(() => secrets)
    const answer = await rotate({ ...rig.deps, checkpoint }, hmacOnly())
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
    expect(judgements(old.hmac_secret)).toEqual(everywhere('refused'))
    await overlap.end()
    expect(secrets.size).toBe(2)
    expect(answer.confirmed_edges).toHaveLength(3)
    expect(answer.lease_expired_edges).toEqual([])
    expect(answer).not.toHaveProperty('webhook_secret')
    expect(answer).not.toHaveProperty('public_api_key')
  })

  it('has the edges’ confirmation of both steps before it answers', async () => {
    const steps: string[] = []
    const { directory } = rig.deps
    const slow: RotationDeps['directory'] = {
      connected: directory.connected,
      findEpoch: directory.findEpoch,
      project: async (projection) => {
        const revision = await directory.project(projection)
        const on = projection.entry.hmac_secret_sealed !== null
        steps.push(`${on ? 'on' : 'off'} at ${revision}`)
        return revision
      },
      awaitEdges: async (revision) => {
        await new Promise((resolve) => setTimeout(resolve, 100))
        steps.push(`confirmed ${revision}`)
        return directory.awaitEdges(revision)
      },
    }
    await rotate({ ...rig.deps, directory: slow }, hmacOnly())
    const [off, on] = [Number(steps[0]?.slice(7)), Number(steps[2]?.slice(6))]
    expect(steps).toEqual([`off at ${off}`, `confirmed ${off}`, `on at ${on}`, `confirmed ${on}`])
  })

  it('of all credentials changes all three, and is one row in the audit log', async () => {
    const answer = await rotate(rig.deps, {
      hmac: true,
      webhook: true,
      apiKey: true,
      tenantId,
      actor: 'test',
    })
    const store = createTenantStore(rig.postgres)
    expect(await store.findTenantByApiKey(hashApiKey(old.public_api_key))).toBeNull()
    expect(await store.findTenantByApiKey(hashApiKey(answer.public_api_key!))).not.toBeNull()
    expect(answer.webhook_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(answer.webhook_secret).not.toBe(old.webhook_secret)
    const rows = await listAudit(rig.postgres, { tenantId, limit: 10 })
    expect(rows.map((row) => row.action)).toEqual([
      'tenant.rotated',
      'tenant.rotation_begun',
      'tenant.created',
    ])
    expect(Object.keys(rows[0]!.after as object).sort()).toEqual([
      'hmac_secret',
      'public_api_key',
      'webhook_secret',
    ])
    const text = JSON.stringify(rows)
    for (const credentials of [old, answer]) {
      expect(text).not.toContain(credentials.hmac_secret)
      expect(text).not.toContain(credentials.webhook_secret!.slice(6, -6))
      expect(text).not.toContain(credentials.public_api_key)
    }
  })

  it('of the webhook secret or key alone leaves the HMAC secret valid throughout', async () => {
    const overlap = watchOverlap(() => [old.hmac_secret])
    await rotate(rig.deps, { ...only, webhook: true, tenantId, actor: 'test' })
    await rotate(rig.deps, { ...only, apiKey: true, tenantId, actor: 'test' })
    await overlap.end()
    expect(judgements(old.hmac_secret)).toEqual(everywhere('accepted'))
    expect((await createTenantStore(rig.postgres).findTenant(tenantId))?.epoch).toBe(1)
  })

  it('of an unknown tenant is rejected as such', async () => {
    const request = { ...hmacOnly(), tenantId: 'nobody' }
    await expect(rotate(rig.deps, request)).rejects.toMatchObject({ code: 'tenant_not_found' })
  })

  it('waits for another of the same tenant: the last one is valid, without overlap', async () => {
    const secrets = new Set([old.hmac_secret])
    const checkpoint = async () => {
      for (const { secret } of await readSecrets()) secrets.add(secret)
    }
    const overlap = watchOverlap(() => secrets)
    const finished: string[] = []
    const answers = Array.from({ length: 4 }, async () => {
      const answer = await rotate({ ...rig.deps, checkpoint }, hmacOnly())
      finished.push(answer.hmac_secret!)
    })
    await Promise.all(answers)
    await overlap.end()
    expect(secrets.size).toBe(5)
    const { epoch } = (await createTenantStore(rig.postgres).findTenant(tenantId))!
    expect(epoch).toBe(9)
    const live = finished.filter((secret) => judgements(secret).includes('accepted'))
    expect(live).toHaveLength(1)
    expect(judgements(live[0]!)).toEqual(everywhere('accepted'))
  })
})

describe('a disconnected edge', () => {
  it('costs a lease, and rejects with 503 instead of trusting an old secret', async () => {
    const edge = await rig.startEdge()
    const others = edges
    edges = [...others, edge]
    onTestFinished(() => {
      edges = others
    })
    const secrets = new Set([old.hmac_secret])
    const checkpoint = async () => {
      for (const { secret } of await readSecrets()) secrets.add(secret)
    }
    const overlap = watchOverlap(() => secrets)
    await edge.nats.connection.close()
    expect(edge.judge(tenantId, old.hmac_secret)).toBe('accepted')
    const answer = await rotate({ ...rig.deps, checkpoint }, hmacOnly())
    expect(edge.judge(tenantId, old.hmac_secret)).toBe('unavailable')
    await overlap.end()
    edges = others
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
    expect(answer.duration_ms).toBeLessThan(5_000)
    // Once its lease has ended it costs nothing any more.
    const again = await rotate(rig.deps, hmacOnly())
    expect(again.lease_expired_edges).toEqual([])
    expect(again.confirmed_edges).toHaveLength(3)
  })
})

describe('a delayed writer', () => {
  it('cannot restore an old secret at the edges, however late it is', async () => {
    const stale = (await createTenantStore(rig.postgres).findProjection(tenantId))!
    const answer = await rotate(rig.deps, hmacOnly())
    await expect(rig.deps.directory.project(stale)).rejects.toMatchObject({
      name: 'StaleEntryError',
    })
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
  })
})

const stages: RotationStage[] = [
  'locked',
  'off',
  'off_projected',
  'off_everywhere',
  'on',
  'on_projected',
  'on_everywhere',
]
const beforeOn = (stage: RotationStage) => stages.indexOf(stage) < stages.indexOf('on')

/** A console that stops for good at a stage, until its lease has ended. */
async function crashAt(stage: RotationStage, rotated: Partial<typeof only> = { hmac: true }) {
  let reached = () => {}
  let wake = () => {}
  const atStage = new Promise<void>((resolve) => {
    reached = resolve
  })
  const asleep = new Promise<void>((resolve) => {
    wake = resolve
  })
  const deps: RotationDeps = {
    ...rig.deps,
    checkpoint: async (at) => {
      if (at !== stage) return
      reached()
      await asleep
    },
  }
  const outcome = rotate(deps, { ...only, ...rotated, tenantId, actor: 'test' }).then(
    (answer) => answer,
    (error: unknown) => error as Error,
  )
  await atStage
  await takeLeaseAway(rig.postgres, `tenant:${tenantId}`)
  return {
    /** The dead console was only paused, and continues. */
    wake: async () => {
      wake()
      return await outcome
    },
  }
}

describe.each(stages)('a console that dies at the stage "%s"', (stage) => {
  let crashed: Awaited<ReturnType<typeof crashAt>>
  let secrets: Set<string>
  let overlap: ReturnType<typeof watchOverlap>

  beforeEach(async () => {
    secrets = new Set([old.hmac_secret])
    overlap = watchOverlap(() => secrets)
    crashed = await crashAt(stage)
    for (const { secret } of await readSecrets()) secrets.add(secret)
  })
  afterEach(() => crashed.wake())

  it('leaves at most one secret active, and the sweep restores one everywhere', async () => {
    const active = (await readSecrets()).filter(({ state }) => state === 'active')
    expect(active.length).toBeLessThanOrEqual(1)
    await until('nothing is under way', async () => {
      const undone = await undoAbandonedRotations(rig.deps)
      return undone > 0 || (await createCredentialStore(rig.postgres).listRotating()).length === 0
    })
    await until('one secret works everywhere', async () => {
      await rig.projection.repair()
      const [live, ...more] = await readSecrets()
      return (
        more.length === 0 &&
        live!.state === 'active' &&
        (live!.secret === old.hmac_secret) === beforeOn(stage) &&
        judgements(live!.secret).every((verdict) => verdict === 'accepted')
      )
    })
    await overlap.end()
  })

  it('is overtaken by the next call, and changes nothing when it resumes', async () => {
    const answer = await rotate(rig.deps, hmacOnly())
    secrets.add(answer.hmac_secret!)
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
    for (const secret of secrets) {
      if (secret !== answer.hmac_secret) expect(judgements(secret)).toEqual(everywhere('refused'))
    }
    const woken = await crashed.wake()
    if (stage !== 'on_everywhere' && stage !== 'on_projected') expect(woken).toBeInstanceOf(Error)
    await rig.projection.repair()
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
    expect(await createCredentialStore(rig.postgres).listRotating()).toEqual([])
    await overlap.end()
  })
})

/** The active credentials of the tenant, unsealed. */
async function readActive(kind: 'hmac' | 'webhook'): Promise<string[]> {
  const { rows } = await rig.postgres.query<{ sealed: string }>(
    `select sealed from tenant_secrets where tenant_id = $1 and kind = $2 and state = 'active'`,
    [tenantId, kind],
  )
  return rows.map(({ sealed }) => rig.deps.sealer.unseal(sealed, { tenantId, kind }))
}

async function countActiveKeys(): Promise<number> {
  const { rows } = await rig.postgres.query<{ count: number }>(
    `select count(*)::int as count from api_keys where tenant_id = $1 and state = 'active'`,
    [tenantId],
  )
  return rows[0]!.count
}

const isKeyOn = async (key: string) =>
  (await createTenantStore(rig.postgres).findTenantByApiKey(hashApiKey(key))) !== null

const withoutHmac: RotationStage[] = ['locked', 'on', 'on_everywhere']
const together: [string, Partial<typeof only>, RotationStage[]][] = [
  ['webhook', { webhook: true }, withoutHmac],
  ['api-key', { apiKey: true }, withoutHmac],
  ['webhook and api-key', { webhook: true, apiKey: true }, withoutHmac],
  ['all three', { hmac: true, webhook: true, apiKey: true }, stages],
]
const crashes = together.flatMap(([name, rotated, at]) =>
  at.map((stage) => ({ name, rotated: { ...only, ...rotated }, stage })),
)

describe.each(crashes)('a console that dies rotating $name at "$stage"', ({ rotated, stage }) => {
  it('leaves all of the old or all of the new active, and the next call decides', async () => {
    const crashed = await crashAt(stage, rotated)
    onTestFinished(() => void crashed.wake())
    // None is active twice, none is lost, and credentials rotated together changed together.
    const isOld = beforeOn(stage)
    const [webhook, ...more] = await readActive('webhook')
    expect(more).toEqual([])
    expect(webhook === old.webhook_secret).toBe(isOld || !rotated.webhook)
    expect(await countActiveKeys()).toBe(1)
    expect(await isKeyOn(old.public_api_key)).toBe(isOld || !rotated.apiKey)

    const answer = await rotate(rig.deps, { ...rotated, tenantId, actor: 'test' })
    const expectAnswered = async () => {
      const webhookOn = answer.webhook_secret ?? old.webhook_secret
      expect(await readActive('webhook')).toEqual([webhookOn])
      expect(await countActiveKeys()).toBe(1)
      expect(await isKeyOn(answer.public_api_key ?? old.public_api_key)).toBe(true)
      const hmacOn = answer.hmac_secret ?? old.hmac_secret
      expect(await readActive('hmac')).toEqual([hmacOn])
      expect(judgements(hmacOn)).toEqual(everywhere('accepted'))
      if (rotated.hmac) expect(judgements(old.hmac_secret)).toEqual(everywhere('refused'))
    }
    await expectAnswered()
    // The dead console was only paused.
    await crashed.wake()
    await rig.projection.repair()
    await expectAnswered()
    expect(await createCredentialStore(rig.postgres).listRotating()).toEqual([])
  })
})

describe('NATS', () => {
  it('down from the start makes the rotation fail without a change', async () => {
    const away = { ...rig.deps.directory, connected: () => false }
    await expect(rotate({ ...rig.deps, directory: away }, hmacOnly())).rejects.toMatchObject({
      code: 'unavailable',
    })
    expect(judgements(old.hmac_secret)).toEqual(everywhere('accepted'))
    expect((await createTenantStore(rig.postgres).findTenant(tenantId))?.epoch).toBe(1)
  })

  it('lost before the old secret is revoked everywhere makes it valid again', async () => {
    let calls = 0
    const project: RotationDeps['directory']['project'] = async (projection) => {
      if (++calls === 1) throw new Error('timeout')
      return rig.deps.directory.project(projection)
    }
    const deps = { ...rig.deps, directory: { ...rig.deps.directory, project } }
    await expect(rotate(deps, hmacOnly())).rejects.toMatchObject({ code: 'unavailable' })
    await until('the old secret works again', () =>
      judgements(old.hmac_secret).every((verdict) => verdict === 'accepted'),
    )
    const actions = (await listAudit(rig.postgres, { tenantId, limit: 2 })).map((row) => row.action)
    expect(actions).toEqual(['tenant.rotation_undone', 'tenant.rotation_begun'])
  })

  it('lost for a moment after the new secret is active only delays the answer', async () => {
    let calls = 0
    const project: RotationDeps['directory']['project'] = async (projection) => {
      calls++
      if (calls === 2 || calls === 3) throw new Error('timeout')
      return rig.deps.directory.project(projection)
    }
    const deps = { ...rig.deps, directory: { ...rig.deps.directory, project } }
    const answer = await rotate(deps, hmacOnly())
    expect(judgements(answer.hmac_secret!)).toEqual(everywhere('accepted'))
  })
})
