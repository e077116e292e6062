/** The OpenAPI document of the REST API without databases: its routes are never called. */
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ApiDeps, createApiApp } from '../../../services/api/app.ts'

/** @returns the document that `/openapi.json` answers */
export async function describePublicApi(): Promise<{ paths?: Record<string, unknown> }> {
  const none = {}
  const deps = {
    tenants: none,
    alerts: none,
    history: none,
    users: none,
    phones: none,
    events: none,
    policies: none,
    lists: none,
    labels: none,
    reconciliation: none,
    nowMs: () => 0,
    monotonicMs: () => 0,
  } as unknown as ApiDeps
  const http = { log: createLog('test', 'silent'), metrics: createMetrics('api') }
  const app = await createApiApp(deps, http)
  await app.ready()
  return app.swagger() as { paths?: Record<string, unknown> }
}
