/** Erases devices from the request logs that the edges keep in memory. */
import { requestLogForgetDevicesMax } from '#shared/core/base/limits/ingest.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { queryRequestLogs } from '#shared/io/telemetry/request-log-queries.ts'
import { listEdges } from '#shared/io/tenants/directory/list-edges.ts'

/**
 * Returns once every edge has forgotten the devices. With very many it forgets the tenant's whole
 * log, which holds no more than its latest submissions.
 * @throws Problem unavailable when an edge does not confirm it: run it again, it may be gone soon
 */
export async function forgetRequests(
  { nats, sealer }: { nats: Nats; sealer: Sealer },
  { tenantId, deviceIds }: { tenantId: string; deviceIds: readonly string[] },
): Promise<void> {
  const { edges } = await listEdges(nats, sealer)
  const { silent } = await queryRequestLogs({
    nats,
    prover: sealer.proverOf('request log'),
    tenantId,
    edgeIds: edges.map(({ edge_id: edgeId }) => edgeId),
    forget: { device_ids: deviceIds.length > requestLogForgetDevicesMax ? null : [...deviceIds] },
  })
  if (silent.length === 0) return
  throw unavailable(`Edges have not cleared their request logs: ${silent.join(', ')}.`)
}
