/** A console with its projector and two edges on real servers, for tests of lists. */
import { randomUUID } from 'node:crypto'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createConsoleApp } from '../../../services/console/app.ts'
import { startListProjector } from '../../../services/console/jobs/list-projector.ts'
import { createTenant } from '../../../services/console/tenants/manage-tenants.ts'
import { type ConsoleRig, createConsoleRig, testLog } from '../http/console-rig.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { type EdgeOptions, type EdgeRig, startEdgeRig, type TestEdge } from './edge-rig.ts'

const adminToken = 'the-admin-token-of-this-test'

export type ListTenant = { tenantId: string; secret: string }

export type ListRig = {
  console: ConsoleRig
  edges: EdgeRig
  /** The second edge has the given clock. */
  both: TestEdge[]
  makeTenant: () => Promise<ListTenant>
  call: (
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    payload?: object,
  ) => Promise<{ status: number; body: ReturnType<typeof JSON.parse> }>
  stop: () => Promise<void>
}

/**
 * @param wallMs the clock of the second edge
 * @param options of both edges
 */
export async function startListRig(
  wallMs: () => number = Date.now,
  options: EdgeOptions = {},
): Promise<ListRig> {
  const [postgres, edges] = await Promise.all([startPostgres(), startEdgeRig()])
  const console = await createConsoleRig({ postgres, nats: edges.server }, edges.masterKey)
  const deps = {
    ...console.deps,
    adminToken,
  }
  const app = await createConsoleApp(deps, { log: testLog, metrics: createMetrics('console') })
  const both = [await edges.startEdge(options), await edges.startEdge({ ...options, wallMs })]
  const projector = startListProjector({
    postgres: console.postgres,
    findNats: () => console.nats,
    sealer: console.deps.sealer,
    log: testLog,
    metrics: createMetrics('test'),
  })
  return {
    console,
    edges,
    both,
    makeTenant: async () => {
      const tenantId = `tenant-${randomUUID().slice(0, 8)}`
      const made = { name: '', environment: 'live', webhookUrl: null, actor: 'test' } as const
      const { hmac_secret: secret } = await createTenant(console.deps, { ...made, tenantId })
      return { tenantId, secret }
    },
    call: async (method, path, payload) => {
      const answer = await app.inject({
        method,
        url: `/admin/v1${path}`,
        headers: { authorization: `Bearer ${adminToken}` },
        ...(payload === undefined ? {} : { payload }),
      })
      return { status: answer.statusCode, body: answer.json() }
    },
    stop: async () => {
      await projector.stop()
      await app.close()
      await console.close()
      await Promise.all([edges.stop(), postgres.stop()])
    },
  }
}
