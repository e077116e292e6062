/**
 * The entries of the tenant directory in NATS, each with its proof. What a console writes is
 * signed: an edge can check it and write none. A proof covers the whole entry, its key, the stream
 * and, for what a console writes, the very revision at which it stands. A revision is used once, so
 * an entry that is put back, even by a party that may write the bucket, stands at a revision for
 * which there is no proof. An edge that has just started sees that as well as any other.
 *
 * The text of an entry is its proof, a line break, and JSON; JSON `null` says that it was removed.
 */
import type { KV, KvEntry, NatsConnection } from 'nats'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { EdgeKeys } from '#shared/io/keys/edge-keys.ts'
import {
  attachProof,
  type Prover,
  splitProof,
  toProvingKeyId,
  type Verifier,
} from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import { restoreTenantsBucket } from '#shared/io/nats/streams/restore-streams.ts'

type Opened = {
  nats: Nats
  bucket: KV
  /** When its stream was made: another creation is another stream. */
  createdAt: string
}

/** The directory as an edge has it: it checks consoles' entries, and cannot write one. */
export type EdgeDirectory = Opened & {
  /** Of consoles' entries. */
  entries: Verifier
  /** Of what edges announce. */
  announcements: Prover
}

/** The directory as a console has it. */
export type Directory = EdgeDirectory & { entries: Prover }

/** Opens the bucket, which is made when it is missing. @throws when NATS is away */
export async function openDirectory(nats: Nats, sealer: Sealer): Promise<Directory> {
  const bucket = await restoreTenantsBucket(nats)
  const { streamInfo } = await bucket.status()
  return toDirectory({ nats, bucket, createdAt: String(streamInfo.created) }, sealer)
}

export function toDirectory(opened: Opened, sealer: Sealer): Directory {
  return {
    ...opened,
    entries: sealer.proverOf('directory entry'),
    announcements: sealer.proverOf('edge announcement'),
  }
}

export function toEdgeDirectory(opened: Opened, keys: EdgeKeys): EdgeDirectory {
  const { entries } = keys
  return { ...opened, entries, announcements: keys.proverOf('edge announcement') }
}

export type ProvenEntry = {
  /** The JSON of the entry, and its value, which is null where it was removed. */
  text: string
  value: unknown
  /** Whether it is proven under the key that proves now, not one that is only still held. */
  byPresentKey: boolean
}

/** @returns null when a console did not write this entry at this revision */
export function readProven(
  { entries, createdAt }: Pick<EdgeDirectory, 'entries' | 'createdAt'>,
  entry: KvEntry,
): ProvenEntry | null {
  return read(entries, [createdAt, entry.key, entry.revision], entry)
}

/** @returns null when no edge wrote this announcement under this key */
export function readAnnouncement(
  { announcements, createdAt }: Pick<EdgeDirectory, 'announcements' | 'createdAt'>,
  entry: KvEntry,
): ProvenEntry | null {
  return read(announcements, [createdAt, entry.key], entry)
}

function read(
  verifier: Verifier,
  context: readonly (string | number)[],
  entry: KvEntry,
): ProvenEntry | null {
  if (entry.operation !== 'PUT') return null
  const { proof, text } = splitProof(entry.string())
  if (!verifier.isProven(proof, context, text)) return null
  const byPresentKey = toProvingKeyId(proof) === verifier.keyId
  return { text, value: JSON.parse(text) as unknown, byPresentKey }
}

/**
 * Writes what an edge announces.
 * @param previousRevision of the announcement that it replaces, 0 for none
 * @returns its revision
 * @throws when there is another by now
 */
export function putAnnouncement(
  { bucket, announcements, createdAt }: EdgeDirectory,
  key: string,
  value: object,
  previousRevision: number,
): Promise<number> {
  const text = JSON.stringify(value)
  const entry = attachProof(announcements, [createdAt, key], text)
  return bucket.put(key, entry, { previousSeq: previousRevision })
}

/**
 * Writes a console's entry at the revision that its proof names: the next of the stream. Another
 * writer may take that revision first; then it is tried with the one after.
 * @param text JSON; `null` removes what was there
 * @param previousRevision of the entry that it replaces, 0 for none
 * @returns its revision
 * @throws as `bucket.put` does when the key has another revision by now, or NATS is away
 */
export async function putProven(
  directory: Directory,
  key: string,
  text: string,
  previousRevision: number,
): Promise<number> {
  const writer = writerOf(directory)
  // One at a time: two writes of this process would only take each other's revision.
  const turn = writer.last.then(() => putInTurn(directory, writer, { key, text, previousRevision }))
  writer.last = turn.catch(() => undefined)
  return await turn
}

/** Tries for a revision; with a thousand edges announcing twice a second one in three succeeds. */
const revisionTriesMax = 200

type Writer = {
  last: Promise<unknown>
  createdAt: string
  /** The newest known revision; null when it must be read. */
  revision: number | null
}

const writers = new WeakMap<NatsConnection, Writer>()

function writerOf({ nats, createdAt }: Directory): Writer {
  const { connection } = nats
  const writer = writers.get(connection)
  if (writer?.createdAt === createdAt) return writer
  const fresh = { last: writer?.last ?? Promise.resolve(), createdAt, revision: null }
  writers.set(connection, fresh)
  return fresh
}

async function putInTurn(
  directory: Directory,
  writer: Writer,
  { key, text, previousRevision }: { key: string; text: string; previousRevision: number },
): Promise<number> {
  const { nats, bucket, entries, createdAt } = directory
  for (let tries = 1; ; tries++) {
    writer.revision ??= await readLastRevision(nats)
    const revision = writer.revision + 1
    const proof = entries.prove([createdAt, key, revision], text)
    const expect = { lastSequence: revision - 1, lastSubjectSequence: previousRevision }
    try {
      const subject = `$KV.${tenantsBucket}.${key}`
      const { seq } = await nats.jetstream.publish(subject, `${proof}\n${text}`, { expect })
      writer.revision = seq
      return seq
    } catch (error) {
      writer.revision = null
      if (!isWrongRevision(error) || tries === revisionTriesMax) throw error
      // Refused for the stream's newest revision, or for this key's own: the latter is final.
      if (((await bucket.get(key))?.revision ?? 0) !== previousRevision) throw error
    }
  }
}

async function readLastRevision(nats: Nats): Promise<number> {
  return (await nats.manager.streams.info(`KV_${tenantsBucket}`)).state.last_seq
}
