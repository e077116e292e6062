/**
 * The edges' counts of submissions answered with 200, for reconciliation: a NATS KV bucket
 * its own, one small entry per edge and hour, written every few seconds where something was
 * accepted. An entry holds the counts since the edge's start, so that only the last of them
 * matters; what an edge counted after its last report ends with it when it is killed.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import {
  type AcceptedClaim,
  acceptedKey,
  acceptedSchema,
} from '#shared/core/reconciliation/accepted-claims.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries, readJson } from '#shared/io/nats/kv-entries.ts'
import { type KvReporter, startKvReporter } from '#shared/io/nats/kv-reporter.ts'
import { openAcceptedBucket } from '#shared/io/nats/streams/buckets.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

type Part = { hourMs: number; part: number; accepted: Record<string, number> }

export type ClaimReporterOptions = {
  nats: Nats
  edgeId: string
  log: Log
  metrics: Metrics
  drainChanged: () => Part[]
  requeue: (part: Part) => void
  everyMs?: number
}

/** Reports periodically; a failed report is repeated. */
export function startClaimReporter(options: ClaimReporterOptions): KvReporter {
  const { edgeId, metrics, drainChanged, requeue, ...common } = options
  const reports = metrics.counter(
    'di_ingest_accepted_reports_total',
    'Reports of what was accepted, for reconciliation',
    ['outcome'],
  )
  const toEntry = (part: Part) => {
    const { hourMs: hour, accepted } = part
    const value: AcceptedClaim = { edge_id: edgeId, hour_ms: hour, accepted }
    return {
      key: acceptedKey(edgeId, hour / hourMs, part.part),
      value,
      requeue: () => requeue(part),
    }
  }
  const drainEntries = () => drainChanged().map(toEntry)
  return startKvReporter({ ...common, openBucket: openAcceptedBucket, reports, drainEntries })
}

/**
 * What edges have claimed so far.
 * @param hour in hours since 1970; null for all that is known
 * @throws when NATS is away
 */
export async function listAcceptedClaims(
  nats: Nats,
  hour: number | null,
): Promise<AcceptedClaim[]> {
  const bucket = await openAcceptedBucket(nats)
  const claims: AcceptedClaim[] = []
  const key = hour === null ? '>' : acceptedKey('*', hour, '*')
  for (const entry of (await readEntries(nats, bucket, key)).values()) {
    const parsed = acceptedSchema.safeParse(entry.operation === 'PUT' ? readJson(entry) : null)
    if (parsed.success) claims.push(parsed.data)
  }
  return claims
}
