/**
 * Install roots over three edges with real leases: a rotation refuses no install, an old root ends
 * when an operator says so, and the tenant's own secret is off everywhere once the call returned.
 */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type InstallFacts,
  makeInstallToken,
  toDeviceHash,
} from '#shared/core/installs/install-token.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { recoverTenant } from '#shared/io/recovery/recover-tenant.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import {
  addFirstRoots,
  dropOldInstallRoot,
  rotateInstallRoot,
  setSharedSecret,
} from '../../../services/console/tenants/installs/install-roots.ts'
import { createTenant, requireTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { findSender } from '../../../services/ingest/verify-sender.ts'
import { type ConsoleRig, createConsoleRig, type TestEdge } from '../../support/http/console-rig.ts'
import { decoyRoot } from '../../support/installs/install-roots.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let servers: { postgres: TestPostgres; nats: TestNats }
let rig: ConsoleRig
let edges: TestEdge[]
let tenantId: string
let secret: string

beforeAll(async () => {
  const [postgres, nats] = await Promise.all([startPostgres(), startNats()])
  servers = { postgres, nats }
  rig = await createConsoleRig(servers)
  edges = await Promise.all([rig.startEdge(), rig.startEdge(), rig.startEdge()])
})
afterAll(async () => {
  await rig?.close()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})
beforeEach(async () => {
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  const created = await createTenant(rig.deps, {
    tenantId,
    name: '',
    environment: 'sandbox',
    webhookUrl: null,
    actor: 'test',
  })
  secret = created.hmac_secret
})

type Install = { token: string; key: string; epoch: number }

/** What an edge answers to a registration. @returns null when it may answer nothing now */
function register({ directory }: TestEdge): Install | null {
  const [root] = directory.find(tenantId)!.installRoots
  if (!directory.leaseValid() || root === undefined) return null
  const facts: InstallFacts = {
    t: tenantId,
    d: toDeviceHash('pixel-1'),
    a: null,
    p: 'none',
    v: 'none',
    l: 'none',
    r: null,
    k: null,
    s: [],
    f: {},
    iat: Date.now(),
    exp: Date.now() + 60_000,
  }
  return { ...makeInstallToken(root, facts), epoch: root.epoch }
}

const decoyKey = createSecretKey(randomBytes(43))

/** An edge's verdict on telemetry: `accepted`, or the reason of the refusal. */
function judge({ directory }: TestEdge, key: string, install?: string): string {
  const body = Buffer.from(`{"tenant_id":"${tenantId}"}`)
  const sender = findSender(
    body,
    { signature: signBody(body, key), install },
    {
      findTenant: directory.find,
      leaseValid: directory.leaseValid,
      keysKnown: directory.keysKnown,
      verify: verifySignature,
      decoyKey,
      decoyRoot,
      wallMs: Date.now,
    },
    undefined,
  )
  return 'kind' in sender ? sender.reason : 'accepted'
}
const judgeEverywhere = ({ token, key }: Install) => edges.map((edge) => judge(edge, key, token))
const judgeSecret = () => edges.map((edge) => judge(edge, secret))
const everywhere = (verdict: string) => edges.map(() => verdict)

/** Installs that register at one edge and send to all of them, until it is ended. */
function startFleet() {
  let on = true
  const verdicts: Record<string, number> = {}
  const epochs = new Set<number>()
  const installs: Install[] = []
  const run = async () => {
    for (let turn = 0; on; turn++) {
      const install = register(edges[turn % edges.length]!)
      if (install !== null) {
        epochs.add(install.epoch)
        installs.push(install)
      }
      // The latest ones: those of a root that ended in between must register again.
      for (const { token, key } of installs.slice(-5)) {
        for (const edge of edges) {
          const verdict = judge(edge, key, token)
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
        }
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const running = run()
  return {
    end: async () => {
      on = false
      await running
      return { verdicts, epochs }
    },
  }
}

const rotate = () => rotateInstallRoot(rig.deps, { tenantId, actor: 'ada' })
const drop = () => dropOldInstallRoot(rig.deps, { tenantId, actor: 'ada' })
const actionsOf = async () =>
  (await listAudit(rig.postgres, { tenantId, limit: 50 })).map(({ action }) => action).reverse()

describe('a new tenant', () => {
  it('has a root at every edge, and shows no more of it than its epoch', async () => {
    const install = register(edges[0]!)!
    expect(install.epoch).toBe(1)
    expect(judgeEverywhere(install)).toEqual(everywhere('accepted'))
    const view = await requireTenant(rig.postgres, tenantId)
    expect(view.install_roots).toEqual([
      { epoch: 1, state: 'current', created_at: expect.stringMatching(/Z$/) },
    ])
    expect(view.shared_secret_off).toBe(false)
  })
})

describe('a rotation of the root', () => {
  it('refuses no install while a fleet registers and sends', async () => {
    const fleet = startFleet()
    for (let turn = 0; turn < 8; turn++) await rotate()
    const { verdicts, epochs } = await fleet.end()
    expect(
      Object.keys(verdicts).filter((verdict) => verdict !== 'accepted' && verdict !== 'lease'),
    ).toEqual([])
    expect(verdicts.accepted).toBeGreaterThan(100)
    expect(epochs.size).toBeGreaterThan(3)
  })

  it('makes a root known to every edge before any edge makes tokens with it', async () => {
    const isKnown: boolean[] = []
    const directory: typeof rig.deps.directory = {
      ...rig.deps.directory,
      project: async (projection) => {
        const [makesTokens] = projection.entry.install_roots!
        isKnown.push(
          edges.every((edge) =>
            edge.directory
              .find(tenantId)!
              .installRoots.some(({ epoch }) => epoch === makesTokens!.epoch),
          ),
        )
        return rig.deps.directory.project(projection)
      },
    }
    await rotateInstallRoot({ ...rig.deps, directory }, { tenantId, actor: 'ada' })
    expect(isKnown).toEqual([true, true])
  })

  it('leaves the tokens of the root before valid, until the next one', async () => {
    const first = register(edges[0]!)!
    expect(await rotate()).toMatchObject({
      tenant_id: tenantId,
      epoch: 2,
      previous_epoch: 1,
      lease_expired_edges: [],
    })
    expect(edges.map((edge) => register(edge)?.epoch)).toEqual([2, 2, 2])
    expect(judgeEverywhere(first)).toEqual(everywhere('accepted'))
    expect(await rotate()).toMatchObject({ epoch: 3, previous_epoch: 2 })
    expect(judgeEverywhere(first)).toEqual(everywhere('install_epoch'))
  })

  it('is ended by dropping the one before, at every edge once the call returned', async () => {
    const captured = register(edges[0]!)!
    await rotate()
    expect(await drop()).toMatchObject({ epoch: 2, previous_epoch: null })
    expect(judgeEverywhere(captured)).toEqual(everywhere('install_epoch'))
    expect(judgeEverywhere(register(edges[1]!)!)).toEqual(everywhere('accepted'))
    expect(await drop()).toMatchObject({ epoch: 2, previous_epoch: null })
    expect(await rotate()).toMatchObject({ epoch: 3, previous_epoch: 2 })
    expect(await actionsOf()).toEqual([
      'tenant.created',
      'install_root.rotation_begun',
      'install_root.rotated',
      'install_root.dropped',
      'install_root.rotation_begun',
      'install_root.rotated',
    ])
    const { rows } = await rig.postgres.query(
      `select epoch, state, sealed is null as is_gone from install_roots
       where tenant_id = $1 order by epoch`,
      [tenantId],
    )
    expect(rows).toEqual([
      { epoch: 1, state: 'retired', is_gone: true },
      { epoch: 2, state: 'previous', is_gone: false },
      { epoch: 3, state: 'current', is_gone: false },
    ])
  })

  it('that could not reach the edges goes on with the next call', async () => {
    const before = register(edges[0]!)!
    let projections = 0
    const directory: typeof rig.deps.directory = {
      ...rig.deps.directory,
      project: async (projection) => {
        if (++projections === 1) throw new Error('NATS is away')
        return rig.deps.directory.project(projection)
      },
    }
    const failing = rotateInstallRoot({ ...rig.deps, directory }, { tenantId, actor: 'ada' })
    await expect(failing).rejects.toMatchObject({ code: 'unavailable' })
    expect((await requireTenant(rig.postgres, tenantId)).install_roots).toMatchObject([
      { epoch: 1, state: 'current' },
      { epoch: 2, state: 'next' },
    ])
    expect(await rotate()).toMatchObject({ epoch: 2, previous_epoch: 1 })
    expect(judgeEverywhere(before)).toEqual(everywhere('accepted'))
  })
})

describe('a tenant that is older than install roots', () => {
  it('gets its first one once, from however many consoles', async () => {
    await rig.postgres.query('delete from install_roots where tenant_id = $1', [tenantId])
    const added = await Promise.all([addFirstRoots(rig.deps), addFirstRoots(rig.deps)])
    expect(added.reduce((sum, count) => sum + count)).toBe(1)
    expect(await addFirstRoots(rig.deps)).toBe(0)
    await until('every edge knows it', () => edges.every((edge) => register(edge) !== null))
    await until('every edge has the same', () =>
      judgeEverywhere(register(edges[0]!)!).every((verdict) => verdict === 'accepted'),
    )
    expect(await actionsOf()).toEqual(['tenant.created', 'install_root.created'])
  })
})

describe('the tenant’s own secret', () => {
  it('is refused at every edge once it is off, and installs go on', async () => {
    const install = register(edges[0]!)!
    expect(judgeSecret()).toEqual(everywhere('accepted'))
    const off = await setSharedSecret(rig.deps, { tenantId, actor: 'ada', off: true })
    expect(judgeSecret()).toEqual(everywhere('shared_secret_off'))
    expect(judgeEverywhere(install)).toEqual(everywhere('accepted'))
    expect(off).toEqual({ tenant_id: tenantId, shared_secret_off: true })
    await setSharedSecret(rig.deps, { tenantId, actor: 'ada', off: true })
    await setSharedSecret(rig.deps, { tenantId, actor: 'ada', off: false })
    expect(judgeSecret()).toEqual(everywhere('accepted'))
    expect(await actionsOf()).toEqual([
      'tenant.created',
      'shared_secret.switched_off',
      'shared_secret.switched_on',
    ])
  })
})

describe('a Postgres that was put back', () => {
  it('takes the roots of the directory, so that a dropped one stays dead', async () => {
    const captured = register(edges[0]!)!
    const { rows: backup } = await rig.postgres.query(
      'select epoch, state, sealed from install_roots where tenant_id = $1',
      [tenantId],
    )
    await rotate()
    await drop()
    await setSharedSecret(rig.deps, { tenantId, actor: 'ada', off: true })
    const { entry } = (await createTenantStore(rig.postgres).findProjection(tenantId))!
    await rig.postgres.transaction(async (tx) => {
      await tx.query('delete from install_roots where tenant_id = $1', [tenantId])
      for (const { epoch, state, sealed } of backup) {
        await tx.query(
          'insert into install_roots (tenant_id, epoch, state, sealed) values ($1, $2, $3, $4)',
          [tenantId, epoch, state, sealed],
        )
      }
      await tx.query(
        'update tenants set epoch = 1, shared_secret_off = false where tenant_id = $1',
        [tenantId],
      )
    })
    const recovered = { entry, policyText: null, hmacLast4: null, actor: 'ada' }
    expect(await rig.postgres.transaction((tx) => recoverTenant(tx, recovered))).toBe(true)
    const after = (await createTenantStore(rig.postgres).findProjection(tenantId))!.entry
    expect(after.install_roots).toEqual(entry.install_roots)
    expect(after.shared_secret_off).toBe(true)
    await rig.deps.directory.awaitEdges(
      await rig.deps.directory.project(
        (await createTenantStore(rig.postgres).findProjection(tenantId))!,
      ),
    )
    expect(judgeEverywhere(captured)).toEqual(everywhere('install_epoch'))
  })
})
