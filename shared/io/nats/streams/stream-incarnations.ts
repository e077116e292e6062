/**
 * The incarnations of streams that were put back to an earlier copy, in a NATS KV bucket: one
 * proven entry per incarnation, under a number that only one process can take.
 */
import { z } from 'zod'
import { incarnationsBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  createStreamOffsets,
  type StreamIncarnation,
  type StreamOffsets,
} from '#shared/core/telemetry/stream-offsets.ts'
import type { Prover } from '#shared/io/tenants/directory/proofs.ts'
import type { Nats } from '../connection.ts'
import { isWrongRevision } from '../jetstream-errors.ts'
import { readEntries } from '../kv-entries.ts'
import { decodeReport, encodeReport } from '../kv-reporter.ts'
import { openIncarnationsBucket } from './buckets.ts'

const entrySchema = z.object({
  created_ms: z.int(),
  first_sequence: z.int(),
  base_ms: z.int(),
})

/** A stream at one moment, with the offsets of its messages. */
export type ObservedStream = {
  createdMs: number
  firstSequence: number
  lastSequence: number
  offsets: StreamOffsets
  /** The number of the next incarnation of this stream's name. */
  nextNumber: number
}

/**
 * @param prover of the purpose 'telemetry batch'
 * @throws when the broker does not answer, or the stream does not exist
 */
export async function observeStream(
  nats: Nats,
  prover: Prover,
  stream: string,
): Promise<ObservedStream> {
  const { created, state } = await nats.manager.streams.info(stream)
  const createdMs = Date.parse(String(created))
  const { incarnations, nextNumber } = await readIncarnations(nats, prover, stream)
  return {
    createdMs,
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    offsets: createStreamOffsets(createdMs, incarnations),
    nextNumber,
  }
}

async function readIncarnations(nats: Nats, prover: Prover, stream: string) {
  const bucket = await openIncarnationsBucket(nats)
  const incarnations: StreamIncarnation[] = []
  let nextNumber = 0
  for (const [key, entry] of await readEntries(nats, bucket, `${stream}.*`)) {
    nextNumber = Math.max(nextNumber, Number(key.split('.')[1]) + 1)
    const parsed = entrySchema.safeParse(decodeReport(prover, incarnationsBucket, entry))
    if (!parsed.success) continue
    const { created_ms: createdMs, first_sequence: firstSequence, base_ms: baseMs } = parsed.data
    incarnations.push({ createdMs, firstSequence, baseMs })
  }
  return { incarnations, nextNumber }
}

/**
 * Adds an incarnation.
 * @param number `nextNumber` of the observed stream
 * @returns false when another process took the number: observe the stream again
 */
export async function addIncarnation(
  nats: Nats,
  prover: Prover,
  { stream, number }: { stream: string; number: number },
  { createdMs, firstSequence, baseMs }: StreamIncarnation,
): Promise<boolean> {
  const bucket = await openIncarnationsBucket(nats)
  const key = `${stream}.${number}`
  const value: z.input<typeof entrySchema> = {
    created_ms: createdMs,
    first_sequence: firstSequence,
    base_ms: baseMs,
  }
  try {
    await bucket.create(key, encodeReport(prover, { bucketName: incarnationsBucket, key }, value))
    return true
  } catch (error) {
    if (isWrongRevision(error)) return false
    throw error
  }
}
