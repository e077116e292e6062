/**
 * The present writers and readers of what processes exchange, without servers: what a writer would
 * publish is returned as text.
 */

import type { KvEntry, MsgHdrs } from 'nats'
import type { z } from 'zod'
import {
  decodeBatch,
  type EventHeader,
  encodeEventHead,
} from '#shared/core/telemetry/event-batch.ts'
import { batchProofHeader } from '#shared/core/telemetry/nats-names.ts'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { publishTenantHint } from '#shared/io/deliveries/publish-hints.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { attachProof, type ProofPurpose, splitProof } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { createTelemetryPublisher } from '#shared/io/telemetry/telemetry-publisher.ts'
import {
  type Directory,
  putAnnouncement,
  putProven,
  readAnnouncement,
  readProven,
} from '#shared/io/tenants/directory/directory-entries.ts'
import { decodeReport, encodeReport } from '#shared/io/tenants/directory/kv-reporter.ts'
import { encodeBatch } from '../../services/ingest/group-commit.ts'

export type Format<Value> = {
  schema: z.ZodType<Value>
  /** A value with every optional member. */
  sample: Value
  /** The key under which it is stored; empty without one. */
  key: (value: Value) => string
  write: (value: Value) => string | Promise<string>
  /** @throws when the reader refuses it */
  read: (text: string, key: string) => unknown
}

/** MASTER_KEY of what is recorded, in the form of keys before the switch of `rewrap`. */
export const sealer = createSealer([Buffer.alloc(32, 1).toString('base64')], () => 'old')

/** Proofs bind when the bucket was made and the revision of an entry. */
const createdAt = '2026-01-01T00:00:00Z'
const revision = 7

export const directory = {
  createdAt,
  entries: sealer.proverOf('directory entry'),
  announcements: sealer.proverOf('edge announcement'),
}

export const toEntry = (key: string, text: string) =>
  ({ key, revision, operation: 'PUT', string: () => text }) as unknown as KvEntry

/** A console's entry of the tenant directory. */
export function directoryEntry<Value extends object>(
  facts: Pick<Format<Value>, 'schema' | 'sample' | 'key'>,
): Format<Value> {
  return {
    ...facts,
    write: async (value) => {
      let written = ''
      const jetstream = {
        publish: async (_subject: string, text: string) => {
          written = text
          return { seq: revision }
        },
      }
      const manager = { streams: { info: async () => ({ state: { last_seq: revision - 1 } }) } }
      const nats = { connection: {}, jetstream, manager } as unknown as Nats
      const opened = { ...directory, nats } as Directory
      await putProven(opened, facts.key(value), JSON.stringify(value), 0)
      return written
    },
    read: (text, key) => facts.schema.parse(readProven(directory, toEntry(key, text))?.value),
  }
}

/** What an edge announces in the tenant directory. */
export function announcement<Value extends object>(
  facts: Pick<Format<Value>, 'schema' | 'sample' | 'key'>,
): Format<Value> {
  return {
    ...facts,
    write: async (value) => {
      let written = ''
      const bucket = {
        put: async (_key: string, text: string) => {
          written = text
          return revision
        },
      }
      await putAnnouncement(
        { ...directory, bucket } as unknown as Directory,
        facts.key(value),
        value,
        0,
      )
      return written
    },
    read: (text, key) => facts.schema.parse(readAnnouncement(directory, toEntry(key, text))?.value),
  }
}

/** An entry of another bucket. */
export function bucketEntry<Value extends object>(
  { bucketName, purpose }: { bucketName: string; purpose: ProofPurpose },
  facts: Pick<Format<Value>, 'schema' | 'sample' | 'key'>,
): Format<Value> {
  const prover = sealer.proverOf(purpose)
  return {
    ...facts,
    write: (value) => encodeReport(prover, { bucketName, key: facts.key(value) }, value),
    read: (text, key) => facts.schema.parse(decodeReport(prover, bucketName, toEntry(key, text))),
  }
}

/** A query of the request log or its answer. @param context what the proof binds */
export function requestLogMessage<Value>(
  context: readonly string[],
  facts: Pick<Format<Value>, 'schema' | 'sample'>,
): Format<Value> {
  const prover = sealer.proverOf('request log')
  return {
    ...facts,
    key: () => '',
    write: (value) => attachProof(prover, context, JSON.stringify(value)),
    read: (whole) => {
      const { proof, text } = splitProof(whole)
      if (!prover.isProven(proof, context, text)) throw new Error('it has no proof')
      return facts.schema.parse(JSON.parse(text))
    },
  }
}

/** JSON without a proof. */
export function plainJson<Value>(
  facts: Pick<Format<Value>, 'schema' | 'sample'> & Partial<Format<Value>>,
): Format<Value> {
  return {
    key: () => '',
    write: (value) => JSON.stringify(value),
    read: (text) => facts.schema.parse(JSON.parse(text)),
    ...facts,
  }
}

/** A delivery hint as it is published. */
export async function writeHint(hint: { tenant_id: string; delivery_id: string }): Promise<string> {
  let written = ''
  const jetstream = {
    publish: async (_subject: string, text: string) => {
      written = text
    },
  }
  const nats = { connected: () => true, jetstream } as unknown as Nats
  await publishTenantHint(nats, { tenantId: hint.tenant_id, deliveryId: hint.delivery_id })
  return written
}

const batchProver = sealer.proverOf('telemetry batch')

/** A batch message with its proof in the first line. @param event its only one */
export async function writeBatch({
  body,
  ...header
}: EventHeader & { body: Telemetry }): Promise<string> {
  const bytes = Buffer.from(JSON.stringify(body))
  const head = encodeEventHead(header, bytes.length)
  const message = encodeBatch([
    { head, body: bytes, bytes: head.length + bytes.length + 2 },
  ] as never)
  let proof = ''
  const connection = {
    subscribe: () => undefined,
    status: async function* () {},
    publish: (_subject: string, _message: Uint8Array, { headers }: { headers: MsgHdrs }) => {
      proof = headers.get(batchProofHeader)
    },
  }
  const nats = { connection, newInbox: () => 'inbox' } as unknown as Nats
  const publish = createTelemetryPublisher(nats, toTelemetryStream(1), batchProver)
  // Nothing answers.
  await publish(message, 'batch-1', 0).catch(() => undefined)
  return `${proof}\n${Buffer.from(message).toString()}`
}

/** @returns the event of the message */
export function readBatch(whole: string): unknown {
  const { proof, text } = splitProof(whole)
  const message = Buffer.from(text)
  if (!batchProver.isProven(proof, [], message)) throw new Error('it has no proof')
  const { events, invalid } = decodeBatch(message, 0)
  if (events[0] === undefined) throw new Error(invalid[0]?.detail)
  return events[0]
}
