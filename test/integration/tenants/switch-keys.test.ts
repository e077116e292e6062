// The upgrade from a release where every process had MASTER_KEY: edges accept every valid request
// all the while, nothing is switched while a process would not understand it, and afterwards each
// process works with its own keys alone.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { edgeKey, listKey } from '#shared/core/tenants/directory-entries.ts'
import { createEdgeKeys } from '#shared/io/keys/edge-keys.ts'
import { listOlderProcesses, readKeyForm } from '#shared/io/keys/key-form.ts'
import { createWebhookOpener, readEdgeKeys, toDerivedKey } from '#shared/io/keys/process-keys.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  openDirectory,
  putAnnouncement,
  putProven,
} from '#shared/io/tenants/directory/directory-entries.ts'
import { openTenantDirectory } from '#shared/io/tenants/directory/edge-directory.ts'
import { rewrapSecrets } from '../../../services/console/keys/rewrap.ts'
import {
  type CreatedTenant,
  createTenant,
} from '../../../services/console/tenants/manage-tenants.ts'
import {
  type ConsoleRig,
  createConsoleRig,
  type TestEdge,
  testLog,
} from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { nowMs } from '../../support/telemetry/edge-rig.ts'

let servers: { postgres: TestPostgres; nats: TestNats }
let rig: ConsoleRig
let tenants: CreatedTenant[]
/** An edge that still has MASTER_KEY. */
let upgraded: Awaited<ReturnType<typeof openUpgraded>>
const actor = 'test'

beforeAll(async () => {
  const [postgres, nats] = await Promise.all([startPostgres(), startNats()])
  servers = { postgres, nats }
  rig = await createConsoleRig(servers)
  // As the migration leaves an installation that has tenants.
  await rig.postgres.query(`update key_form set form = 'old'`)
  await rig.deps.keyForm.refresh()
  await rig.nats.manager.streams.purge('KV_tenants')
  upgraded = await openUpgraded()
  tenants = await Promise.all(
    [1, 2, 3].map((n) =>
      createTenant(rig.deps, {
        tenantId: `tenant-${n}`,
        name: '',
        environment: 'live',
        webhookUrl: null,
        actor,
      }),
    ),
  )
  const directory = await openDirectory(rig.nats, rig.deps.sealer)
  await putProven(directory, listKey('gone', 0), 'null', 0)
  await until('Postgres and the edges are equal', async () => {
    await rig.projection.repair()
    return upgraded.directory.synced()
  })
})
afterAll(async () => {
  await upgraded?.close()
  await rig?.close()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})

async function openUpgraded() {
  const nats = await connectNats(servers.nats.url, 'upgraded', testLog)
  const directory = openTenantDirectory({
    nats,
    keys: createEdgeKeys(readEdgeKeys({ MASTER_KEY: rig.masterKey })),
    log: testLog,
    metrics: createMetrics('test-edge'),
    edgeId: 'upgraded',
    nowMs,
  })
  await until('the edge holds a lease', directory.leaseValid)
  return {
    directory,
    close: async () => {
      await directory.close()
      await nats.close()
    },
  }
}

/** Tenants that the upgraded edge can verify now. */
const served = () =>
  tenants.filter(({ tenant_id: id }) => {
    const tenant = upgraded.directory.find(id)
    return upgraded.directory.leaseValid() && tenant?.fault === null && tenant.key !== null
  }).length

async function readHeads(): Promise<string[]> {
  const { rows } = await rig.postgres.query<{ sealed: string }>(
    'select sealed from tenant_secrets where sealed is not null',
  )
  return [...new Set(rows.map(({ sealed }) => sealed.slice(0, 2)))]
}

const rewrap = () => rewrapSecrets(rig.deps, { actor })

it('before the switch everything is written as the release before reads it', async () => {
  expect(await readHeads()).toEqual(['v1'])
  expect(served()).toBe(3)
  const edge = await rig.postgres.query<{ form: string }>('select form from key_form')
  expect(edge.rows).toEqual([{ form: 'old' }])
})

it('is refused by name while an edge or a delivery process reads the old form only', async () => {
  const directory = await openDirectory(rig.nats, rig.deps.sealer)
  let revision = 0
  let alive = true
  const older = (async () => {
    for (; alive; await sleep(200)) {
      const entry = { edge_id: 'older', applied_revision: 1_000_000 }
      revision = await putAnnouncement(directory, edgeKey('older'), entry, revision)
    }
  })()
  await expect(rewrap()).rejects.toMatchObject({
    code: 'older_processes',
    message: expect.stringContaining('edge older'),
  })
  alive = false
  await older
  const delivery = createPostgres(rig.postgresUrl, { role: 'delivery', log: testLog })
  await delivery.query('select 1')
  await expect(rewrap()).rejects.toMatchObject({
    code: 'older_processes',
    message: expect.stringMatching(/: delivery\./),
  })
  await delivery.close()
  const isGone = async () => (await listOlderProcesses(rig.postgres)).length === 0
  await until('its connections are gone', isGone)
  expect(await readKeyForm(rig.postgres)).toBe('old')
  expect(await readHeads()).toEqual(['v1'])
})

it('seals and signs everything, while every edge verifies all the time', async () => {
  let judging = true
  const lost: number[] = []
  const judge = (async () => {
    for (; judging; await sleep(1)) if (served() !== 3) lost.push(served())
  })()
  // An edge of the release before that has died does not count.
  const answer = await rewrap()
  judging = false
  await judge
  expect(lost).toEqual([])
  expect(answer).toMatchObject({ rewrapped: 12, remaining: 0 })
  expect(await readKeyForm(rig.postgres)).toBe('new')
  expect(await readHeads()).toEqual(['v2'])
  expect(await rewrap()).toMatchObject({ rewrapped: 0, already: 9, remaining: 0 })
})

it('afterwards each process works with its own keys alone', async () => {
  const edge: TestEdge = await rig.startEdge()
  expect(edge.directory.fault()).toBeNull()
  for (const { tenant_id: id, hmac_secret: secret } of tenants) {
    expect(edge.judge(id, secret)).toBe('accepted')
  }
  const opener = createWebhookOpener({ WEBHOOK_KEY: toDerivedKey(rig.masterKey, 'WEBHOOK_KEY') })
  const { rows } = await rig.postgres.query<{ tenant_id: string; sealed: string }>(
    `select tenant_id, sealed from tenant_secrets where kind = 'webhook' order by tenant_id`,
  )
  const opened = rows.map(({ tenant_id: tenantId, sealed }) =>
    opener.unseal(sealed, { tenantId, kind: 'webhook' }),
  )
  expect(opened).toEqual(tenants.map(({ webhook_secret: secret }) => secret))
})
