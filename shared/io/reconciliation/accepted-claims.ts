/**
 * The edges' counts of submissions answered with 200, for reconciliation: a NATS KV bucket
 * its own, one small entry per edge and hour, written every few seconds where something was
 * accepted. An entry holds the counts since the edge's start, so that only the last of them
 * matters; what an edge counted after its last report ends with it when it is killed.
 */
import { type KV, StorageType } from 'nats'
import { hourMs } from '#shared/core/base/instants.ts'
import {
  type AcceptedClaim,
  acceptedKey,
  acceptedSchema,
} from '#shared/core/reconciliation/accepted-claims.ts'
import { acceptedBucket } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries, readJson } from '#shared/io/nats/kv-entries.ts'
import { type KvReporter, startKvReporter } from '#shared/io/nats/kv-reporter.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

/** As long as the events themselves can wait for a scorer, and a day more. */
const keptMs = 96 * hourMs

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

export function openAcceptedBucket(nats: Nats): Promise<KV> {
  return nats.jetstream.views.kv(acceptedBucket, {
    history: 1,
    storage: StorageType.File,
    replicas: nats.replicas ?? 1,
    ttl: keptMs,
    maxValueSize: 256 * 1024,
    max_bytes: 256 * 1024 ** 2,
  })
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
