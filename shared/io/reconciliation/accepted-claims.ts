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
import { acceptedBucket } from '#shared/core/telemetry/nats-names.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openAcceptedBucket } from '#shared/io/nats/streams/buckets.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import {
  decodeReport,
  type KvReporter,
  startKvReporter,
} from '#shared/io/tenants/directory/kv-reporter.ts'

type Part = { hourMs: number; part: number; accepted: Record<string, number> }

type ClaimReporterOptions = {
  nats: Nats
  /** Of the purpose `edge report`. */
  prover: Prover
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
  return startKvReporter({
    ...common,
    openBucket: openAcceptedBucket,
    bucketName: acceptedBucket,
    reports,
    drainEntries,
  })
}

/**
 * What edges have claimed so far. Entries without an edge's proof are left out.
 * @param hour in hours since 1970; null for all that is known
 * @throws when NATS is away
 */
export async function listAcceptedClaims(
  nats: Nats,
  prover: Prover,
  hour: number | null,
): Promise<AcceptedClaim[]> {
  const bucket = await openAcceptedBucket(nats)
  const claims: AcceptedClaim[] = []
  const key = hour === null ? '>' : acceptedKey('*', hour, '*')
  for (const entry of (await readEntries(nats, bucket, key)).values()) {
    const parsed = acceptedSchema.safeParse(decodeReport(prover, acceptedBucket, entry))
    if (parsed.success) claims.push(parsed.data)
  }
  return claims
}
