/**
 * Erases a device or a user from the telemetry stream of its tenant and from the dead letters:
 * every message with one of its events is overwritten on disk. A telemetry message also has events
 * of other tenants, so it is erased only after all messages up to it are stored and decided. Other
 * events of a dead letter are stored again first.
 */
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { headers, type JsMsg, type MsgHdrs } from 'nats'
import { listElements } from '#shared/core/telemetry/event-batch.ts'
import { deadLetterStream, deadLetterSubject } from '#shared/core/telemetry/nats-names.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark, readStoredWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { isMessageGone } from '#shared/io/nats/jetstream-errors.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'
import { findTelemetryStream } from '#shared/io/tenants/tenant-streams.ts'
import { type ErasureSubject, isOfSubject } from './erasure-subject.ts'

/** The end of the tenant's stream when the erasure began. */
export type TelemetryCut = {
  stream: TelemetryStream
  /** The last message; 0 when the stream has none. */
  sequence: number
  /** The last stream offset that an event of it can have. */
  streamOffset: number
}

/** Reading a stream fails after this long without a message. */
const silenceMaxMs = 10_000
const watermarkPollMs = 50

/** @returns the end of a tenant's telemetry stream at this moment */
export async function readTelemetryCut(
  nats: Nats,
  db: Queryable,
  tenantId: string,
): Promise<TelemetryCut> {
  const stream = await findTelemetryStream(db, tenantId)
  const { lastSequence, offsets } = await readStream(nats, db, stream.stream)
  return {
    stream,
    sequence: await findLastTelemetrySequence(nats, stream),
    streamOffset: offsets.of(lastSequence + 1) - 1,
  }
}

/** @returns the sequence of the last telemetry message; 0 when the stream has none */
export function findLastTelemetrySequence(
  nats: Nats,
  { stream, subject }: TelemetryStream,
): Promise<number> {
  return findLastSequence(nats, stream, subject)
}

/**
 * Waits until all messages of a stream up to one are stored, with `decided` also decided.
 * @returns false when the limit ends before
 */
export async function awaitWorkedOff(
  nats: Nats,
  { stream, sequence }: Pick<TelemetryCut, 'stream' | 'sequence'>,
  options: { decided: boolean; limitMs: number; nowMs: () => number },
): Promise<boolean> {
  const deadlineMs = options.nowMs() + options.limitMs
  for (;;) {
    const stored = (await readStoredWatermark(nats, stream)) >= sequence
    const isDone = async () => (await readDecidedWatermark(nats, stream)) >= sequence
    if (stored && (!options.decided || (await isDone()))) return true
    if (options.nowMs() > deadlineMs) return false
    await sleep(watermarkPollMs)
  }
}

/**
 * Erases the telemetry messages up to a cut that hold an event of the subject.
 * @returns how many there were
 * @throws when the broker does not answer; rows that were erased stay erased
 */
export async function eraseTelemetryMessages(
  nats: Nats,
  subject: ErasureSubject,
  cut: TelemetryCut,
): Promise<number> {
  // The last one may have been erased a moment ago, and then it never comes.
  const { stream } = cut.stream
  const last = await findLastTelemetrySequence(nats, cut.stream)
  const found = await findMessages(nats, stream, Math.min(last, cut.sequence), subject)
  for (const { sequence } of found) await eraseMessage(nats, stream, sequence)
  return found.length
}

/**
 * Erases the dead letters about the subject. Of a letter with several events the others are kept,
 * as a letter of their own.
 * @returns how many there were
 */
export async function eraseDeadLetters(nats: Nats, subject: ErasureSubject): Promise<number> {
  const last = await findLastSequence(nats, deadLetterStream, deadLetterSubject)
  const found = await findMessages(nats, deadLetterStream, last, subject)
  for (const { sequence, rest, about } of found) {
    if (rest.length > 0) await keepRest(nats, rest, about)
    await eraseMessage(nats, deadLetterStream, sequence)
  }
  return found.length
}

/** Letters of the tenant about others that name the subject. */
export async function countDeadLetterMentions(
  nats: Nats,
  { tenantId, id }: ErasureSubject,
): Promise<number> {
  const last = await findLastSequence(nats, deadLetterStream, deadLetterSubject)
  let count = 0
  await readMessages(nats, deadLetterStream, last, ({ data }) => {
    if (hasTexts(Buffer.from(data), [id, `"${tenantId}"`])) count++
  })
  return count
}

type Found = {
  sequence: number
  /** Elements about others, as they are in the message where edges write it so. */
  rest: Uint8Array[]
  about: MsgHdrs | undefined
}

/**
 * Not the stream's own count: a message that was erased is no more, and nothing acknowledges it.
 */
async function findLastSequence(nats: Nats, stream: string, subject: string): Promise<number> {
  try {
    return (await nats.manager.streams.getMessage(stream, { last_by_subj: subject })).seq
  } catch (error) {
    if (isMessageGone(error)) return 0
    throw error
  }
}

/**
 * Messages per pull request. The client counts no bytes, and the broker ends a connection
 * that has 64 MB waiting.
 */
const messagesMax = 28

async function findMessages(
  nats: Nats,
  stream: string,
  lastSequence: number,
  subject: ErasureSubject,
): Promise<Found[]> {
  const found: Found[] = []
  await readMessages(nats, stream, lastSequence, ({ data, seq, headers: about }) => {
    const rest = findRest(data, subject)
    if (rest !== null) found.push({ sequence: seq, rest, about })
  })
  return found
}

/** Reads a stream from its beginning up to a sequence. */
async function readMessages(
  nats: Nats,
  stream: string,
  lastSequence: number,
  onMessage: (message: JsMsg) => void,
): Promise<void> {
  const { state } = await nats.manager.streams.info(stream)
  if (lastSequence === 0 || state.first_seq > lastSequence) return
  const consumer = await nats.jetstream.consumers.get(stream)
  const messages = await consumer.consume({ max_messages: messagesMax })
  let heardMs = performance.now()
  let complete = false
  const watch = setInterval(() => {
    if (performance.now() - heardMs > silenceMaxMs) messages.stop()
  }, 1_000)
  try {
    for await (const message of messages) {
      heardMs = performance.now()
      if (message.seq <= lastSequence) onMessage(message)
      complete = message.seq >= lastSequence
      if (complete) break
    }
  } finally {
    clearInterval(watch)
    await messages.close()
    await consumer.delete().catch(() => false)
  }
  if (!complete) throw new Error(`stream ${stream} could not be read to its end`)
}

/**
 * @returns the elements of a message that are about others, or null when none is about the subject.
 *   An unreadable element is about every subject whose id it contains.
 */
function findRest(data: Uint8Array, subject: ErasureSubject): Uint8Array[] | null {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  const named = bytes.includes(subject.id)
  // An id that is not there as it is can only be there with an escape, or for bytes that are none.
  if (!named && !bytes.includes('\\') && !subject.id.includes('\ufffd')) return null
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return hasTexts(bytes, [subject.id, `"${subject.tenantId}"`]) ? [] : null
  }
  const elements = Array.isArray(value) ? value : [value]
  const own = elements.map((element) => isOfSubject(element, subject))
  if (!own.includes(true)) return null
  const written = listElements(bytes)
  return elements.flatMap((element, index) =>
    own[index] ? [] : [written?.[index] ?? Buffer.from(JSON.stringify(element))],
  )
}

/** Whether bytes have texts: as they are, without escapes, or without those of a text within it. */
function hasTexts(bytes: Buffer, texts: readonly string[]): boolean {
  const plain = bytes.toString('utf8')
  const once = withoutEscapes(plain)
  const readings = [plain, once, withoutEscapes(once)]
  return texts.every((text) => readings.some((reading) => reading.includes(text)))
}

const withoutEscapes = (text: string): string =>
  text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, hex?: string, sign?: string) =>
    hex === undefined ? sign! : String.fromCharCode(Number.parseInt(hex, 16)),
  )

async function keepRest(nats: Nats, rest: Uint8Array[], about: MsgHdrs | undefined): Promise<void> {
  const data = Buffer.from(`[${rest.map((element) => Buffer.from(element)).join()}]`)
  const kept = headers()
  for (const name of ['Reason', 'Detail']) {
    const value = about?.get(name)
    if (value) kept.set(name, value)
  }
  const msgID = `dead-rest-${hash('sha256', data)}`
  await nats.jetstream.publish(deadLetterSubject, data, { headers: kept, msgID })
}

/** Overwrites a message on disk; one that aged out meanwhile is gone as well. */
async function eraseMessage(nats: Nats, stream: string, sequence: number): Promise<void> {
  try {
    await nats.manager.streams.deleteMessage(stream, sequence, true)
  } catch (error) {
    if (!isMessageGone(error)) throw error
  }
}
