/**
 * Stale-secret requests: the edges' reports of requests signed with a retired secret, in a
 * NATS KV bucket with one small entry per edge and tenant, written every few seconds, and
 * only after a change. It is separate from the tenant directory, whose every write costs
 * every edge. The entries expire.
 */
import { staleSecretBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  type StaleSecretReport,
  staleSecretKey,
  staleSecretReportSchema,
} from '#shared/core/tenants/stale-secret-reports.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openStaleSecretBucket } from '#shared/io/nats/streams/buckets.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import {
  decodeReport,
  type KvReporter,
  startKvReporter,
} from '#shared/io/tenants/directory/kv-reporter.ts'

type ReporterOptions = {
  nats: Nats
  /** Of the purpose `edge report`. */
  prover: Prover
  edgeId: string
  log: Log
  metrics: Metrics
  drainChanged: (max: number) => { tenantId: string; report: StaleSecretReport }[]
  requeue: (tenantId: string) => void
  everyMs?: number
}

/** Tenants per report: 32 writes a second at most, of which each may cost the server an fsync. */
const reportTenantsMax = 64

/** Reports periodically; a failed report is repeated. */
export function startStaleSecretReporter(options: ReporterOptions): KvReporter {
  const { edgeId, metrics, drainChanged, requeue, ...common } = options
  const reports = metrics.counter(
    'di_ingest_stale_secret_reports_total',
    'Reports of the use of retired secrets, one per tenant',
    ['outcome'],
  )
  const drainEntries = () =>
    drainChanged(reportTenantsMax).map(({ tenantId, report }) => ({
      key: staleSecretKey(tenantId, edgeId),
      value: report,
      requeue: () => requeue(tenantId),
    }))
  return startKvReporter({
    ...common,
    openBucket: openStaleSecretBucket,
    bucketName: staleSecretBucket,
    reports,
    drainEntries,
  })
}

export type StaleSecretRequestsByVersion = {
  sdk_version: string
  requests: number
  last_seen_at: string
}

/**
 * Adds up what the edges have reported of one tenant and one retired secret, the most used version
 * first. Entries without an edge's proof are left out.
 * @param secret the secret's last four characters
 * @throws when NATS is away
 */
export async function listStaleSecretRequests(
  nats: Nats,
  prover: Prover,
  secret: { tenantId: string; last4: string },
): Promise<StaleSecretRequestsByVersion[]> {
  const bucket = await openStaleSecretBucket(nats)
  const byVersion = new Map<string, { requests: number; lastMs: number }>()
  const entries = await readEntries(nats, bucket, staleSecretKey(secret.tenantId, '*'))
  for (const entry of entries.values()) {
    const parsed = staleSecretReportSchema.safeParse(decodeReport(prover, staleSecretBucket, entry))
    if (!parsed.success || parsed.data.last4 !== secret.last4) continue
    for (const { sdk_version: version, requests, age_ms: ageMs } of parsed.data.versions) {
      const sum = byVersion.get(version) ?? { requests: 0, lastMs: 0 }
      sum.requests += requests
      sum.lastMs = Math.max(sum.lastMs, entry.created.getTime() - ageMs)
      byVersion.set(version, sum)
    }
  }
  return [...byVersion]
    .map(([version, { requests, lastMs }]) => ({
      sdk_version: version,
      requests,
      last_seen_at: new Date(lastMs).toISOString(),
    }))
    .sort((a, b) => b.requests - a.requests || (a.sdk_version < b.sdk_version ? -1 : 1))
}
