/** The admin API's OpenAPI document without a server: its routes are added and never called. */
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { pagesFolder } from '../../../services/console/serve/pages-folder.ts'

/** @returns the document that `/admin/v1/openapi.json` answers */
export async function describeAdminApi(): Promise<{ paths?: Record<string, unknown> }> {
  const absent: unknown = new Proxy(() => absent, {
    get: (_, name) => (typeof name === 'symbol' || name === 'then' ? undefined : absent),
  })
  const needed = {
    adminToken: 'none',
    nowMs: () => 0,
    pagesFolder,
    publicUrl: () => 'http://localhost/',
  }
  const deps = new Proxy(needed as unknown as ConsoleDeps, {
    get: (own, name) => (name in own ? own[name as keyof ConsoleDeps] : absent),
  })
  const app = await createConsoleApp(deps, {
    log: createLog('console', 'silent'),
    metrics: createMetrics('console'),
  })
  try {
    await app.ready()
    return app.swagger() as { paths?: Record<string, unknown> }
  } finally {
    await app.close()
  }
}
