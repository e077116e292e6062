/**
 * A batch message: one JSON array, each element the header of an event, or of a registration of an
 * install, around the body text. An edge encodes them with `encodeEventHead` and
 * `encodeRegistrationHead`; a scorer decodes the message with `decodeBatch`.
 */
import { z } from 'zod'
import { toEventId } from '#shared/core/base/ids.ts'
import { PoisonError } from '#shared/core/base/outcome.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import {
  type AcceptedRegistration,
  type RegistrationHeader,
  registrationHeaderSchema,
  registrationSchema,
} from '#shared/core/installs/registration.ts'
import { eventConnectionSchema } from '#shared/core/network/event-connection.ts'
import { reasonSchema } from '#shared/core/scoring/reason-schema.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { serverSignalsSchema } from '#shared/core/signals/server-signals.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { isPlainNumber } from '#shared/core/signals/signals.ts'
import { isObject, normalizeOptionals, type Telemetry, telemetrySchema } from './submission.ts'

/** What a scorer needs of the install that signed an event. */
const installSchema = z.object({
  /** As of its registration: SHA-256 of the token in base64url, 22 characters. */
  token_id: z.string(),
  /** SHA-256 of the attested key in base64url; null without one. */
  attested_key: z.string().nullable(),
  /** The counter of an App Attest assertion that came with the event and was valid. */
  counter: z.number().int().optional(),
})

/** What the edge adds to the body of an accepted event. */
export const eventHeaderSchema = z.object({
  /** The id of the body as it was signed. */
  event_id: z.string(),
  /**
   * The id of the body as it is kept, where identifiers of the phone were replaced by their hashes;
   * absent where it is the signed one.
   */
  body_id: z.string().optional(),
  tenant_id: z.string(),
  /** The edge's wall clock when the body was complete, in ms since 1970. */
  received_at: z.number().int(),
  rasp_score: z.number().int(),
  rasp_action: z.enum(actions),
  reasons: z.array(reasonSchema),
  policy_version: z.number().int(),
  /** Content address of the policy document that scored it. */
  policy_hash: z.string(),
  /** The tenant's credential epoch that verified the signature. */
  epoch: z.number().int(),
  /** Present when a number outside the catalog's signals may not be exact in a double. */
  inexact_numbers: z.literal(true).optional(),
  /** What the edge itself observed or verified; absent in messages of older edges. */
  server_signals: serverSignalsSchema.optional(),
  /** The install whose key signed it; absent when the tenant's secret did. */
  install: installSchema.optional(),
  /** Where it came from; absent where nothing was measured. */
  connection: eventConnectionSchema.optional(),
})

export type EventHeader = z.infer<typeof eventHeaderSchema>

/** One accepted event as the scorer decodes it. */
export type AcceptedEvent = EventHeader & {
  /** The event's order in the stream: of two events, the lower is earlier. */
  streamOffset: number
  body: Telemetry
  /**
   * The body as it is kept, proven by its id: the signed one, unless the event has a `body_id`.
   * Every decoded event has it. An event that waits in memory for its decision does not.
   */
  bodyBytes?: Uint8Array
  /** `toFilledCategories` of its signals, for an event that is kept without them. */
  filledCategories?: number
  /** `toInstallTraits`, for an event that is kept without most of its body. */
  traits?: InstallTraits | null
}

/**
 * Encodes the part of a batch element before the body; the body and `}` follow it. It starts with
 * two lengths: of the rest of the head, and of the body. Ids, hashes and actions have alphabets
 * that need no escaping; reasons are encoded as JSON.
 * @param bodyBytes the body's length in bytes
 */
export function encodeEventHead(header: EventHeader, bodyBytes: number): string {
  const reasons = header.reasons.length === 0 ? '[]' : JSON.stringify(header.reasons)
  const kept = header.body_id === undefined ? '' : `"body_id":"${header.body_id}",`
  const inexact = header.inexact_numbers === true ? '"inexact_numbers":true,' : ''
  const { server_signals: serverSignals, install, connection } = header
  const server =
    serverSignals === undefined ? '' : `"server_signals":${JSON.stringify(serverSignals)},`
  const signedBy = install === undefined ? '' : `"install":${JSON.stringify(install)},`
  const from = connection === undefined ? '' : `"connection":${JSON.stringify(connection)},`
  const rest =
    `"event_id":"${header.event_id}",${kept}"tenant_id":"${header.tenant_id}",` +
    `"received_at":${header.received_at},"rasp_score":${header.rasp_score},` +
    `"rasp_action":"${header.rasp_action}","reasons":${reasons},` +
    `"policy_version":${header.policy_version},"policy_hash":"${header.policy_hash}",` +
    `"epoch":${header.epoch},${inexact}${server}${signedBy}${from}"body":`
  return withLengths(rest, bodyBytes)
}

/** Encodes the part of a registration's element before its body, as `encodeEventHead` does. */
export function encodeRegistrationHead(header: RegistrationHeader, bodyBytes: number): string {
  const rest =
    `"registration":true,"event_id":"${header.event_id}","tenant_id":"${header.tenant_id}",` +
    `"received_at":${header.received_at},"body":`
  return withLengths(rest, bodyBytes)
}

const withLengths = (rest: string, bodyBytes: number): string =>
  `${headBytesKey}${Buffer.byteLength(rest)}${bodyBytesKey}${bodyBytes},${rest}`

const headBytesKey = '{"head_bytes":'
const bodyBytesKey = ',"body_bytes":'

type DecodedBatch = {
  events: AcceptedEvent[]
  registrations: AcceptedRegistration[]
  /**
   * Elements that are neither an event nor a registration, by index, with their bytes, for the
   * dead-letter stream. After an element with wrong lengths all others are invalid, because their
   * bytes cannot be found.
   */
  invalid: { index: number; detail: string; data: Uint8Array }[]
}

/** Stream offsets of one message: no release of the edge writes more elements into one. */
export const offsetsPerMessage = 256

/**
 * The stream offset of a message's first element. It rises with the sequence, and from a stream to
 * its later replacement, as long as a stream gets less than 3,900 messages a second on average.
 * @param streamCreatedMs when the stream was created, in ms since 1970; its sequences start at 1
 */
export function toStreamOffset(streamCreatedMs: number, sequence: number): number {
  return streamCreatedMs * 1_000 + sequence * offsetsPerMessage
}

/**
 * Decodes a batch message.
 * @param streamOffset of its first element, from `toStreamOffset`
 * @throws PoisonError when the message as a whole cannot be read
 */
export function decodeBatch(data: Uint8Array, streamOffset: number): DecodedBatch {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  let values: unknown
  try {
    values = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new PoisonError('unreadable_batch', 'a batch message is not JSON')
  }
  if (!Array.isArray(values)) {
    throw new PoisonError('unreadable_batch', 'a batch message is not an array')
  }
  const batch: DecodedBatch = { events: [], registrations: [], invalid: [] }
  let place: ElementPlace | null = { start: 0, bodyStart: 0, end: 0 }
  values.forEach((value: unknown, index) => {
    place = place === null ? null : findElement(bytes, place.end + 1)
    const body = place === null ? null : bytes.subarray(place.bodyStart, place.end - 1)
    const fault = findFault(value, body)
    const elementOffset = streamOffset + Math.min(index, offsetsPerMessage - 1)
    if (fault === null && isRegistration(value)) {
      batch.registrations.push(toRegistration(value, elementOffset))
    } else if (fault === null) {
      const event = value as AcceptedEvent
      event.streamOffset = elementOffset
      event.bodyBytes = body!
      if (event.inexact_numbers) event.body = { ...event.body, signals: readExactly(body!) }
      batch.events.push(event)
    } else {
      const data = place === null ? JSON.stringify(value) : bytes.subarray(place.start, place.end)
      batch.invalid.push({ index, detail: fault, data: Buffer.from(data) })
    }
  })
  return batch
}

/**
 * Splits a batch message into its elements, byte for byte.
 * @returns null when an element does not start with its lengths
 */
export function listElements(data: Uint8Array): Uint8Array[] | null {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  const elements: Uint8Array[] = []
  for (let start = 1; start < bytes.length; ) {
    const place = findElement(bytes, start)
    if (place === null) return null
    elements.push(bytes.subarray(place.start, place.end))
    start = place.end + 1
  }
  return elements
}

/** The place of an element in a message: `end` is the index after its closing brace. */
type ElementPlace = { start: number; bodyStart: number; end: number }

/**
 * Finds an element by the lengths at its start.
 * @param start the index of its opening brace
 * @returns null when it does not start with lengths; then no later one can be found either
 */
function findElement(bytes: Buffer, start: number): ElementPlace | null {
  const head = readLength(bytes, start, headBytesKey)
  const body = head === null ? null : readLength(bytes, head.end, bodyBytesKey)
  if (head === null || body === null) return null
  const bodyStart = body.end + 1 + head.length
  const end = bodyStart + body.length + 1
  return end < bytes.length ? { start, bodyStart, end } : null
}

/** Reads a key and the whole number after it. */
function readLength(bytes: Buffer, start: number, key: string) {
  let at = start + key.length
  if (bytes.toString('latin1', start, at) !== key) return null
  let length = 0
  const digits = at
  for (; bytes[at]! >= 0x30 && bytes[at]! <= 0x39 && at < digits + 8; at++) {
    length = length * 10 + bytes[at]! - 0x30
  }
  return at === digits ? null : { length, end: at }
}

/** The signals with inexact numbers as the text that was sent. */
function readExactly(body: Buffer): Signals {
  const reviver = (_key: string, value: unknown, context?: { source: string }): unknown =>
    typeof value === 'number' && !isPlainNumber(value) ? context?.source : value
  return (JSON.parse(body.toString('utf8'), reviver) as { signals: Signals }).signals
}

/** Events of every release lack the member. */
const isRegistration = (value: unknown): boolean => isObject(value) && value.registration === true

/** The members that this release knows: a later edge may write more. */
function toRegistration(value: unknown, streamOffset: number): AcceptedRegistration {
  const body = registrationSchema.parse((value as { body: unknown }).body)
  return { ...registrationHeaderSchema.parse(value), streamOffset, body }
}

/** @param bytes the element's body; null when it cannot be found */
function findFault(value: unknown, bytes: Buffer | null): string | null {
  const body = isObject(value) ? value.body : undefined
  const ofRegistration = isRegistration(value)
  if (isObject(body) && !ofRegistration) normalizeOptionals(body)
  const fault = ofRegistration
    ? describeFault(value, body, registrationHeaderSchema, registrationSchema)
    : describeFault(value, body, eventHeaderSchema, telemetrySchema)
  if (fault !== null) return fault
  if (bytes === null) return 'body_bytes'
  const { event_id: eventId, body_id: bodyId } = value as EventHeader
  return toEventId(bytes) === (bodyId ?? eventId)
    ? null
    : bodyId === undefined
      ? 'event_id'
      : 'body_id'
}

function describeFault(
  value: unknown,
  bodyValue: unknown,
  headerSchema: z.ZodType<{ tenant_id: string }>,
  bodySchema: z.ZodType<{ tenant_id: string }>,
): string | null {
  const header = headerSchema.safeParse(value)
  if (!header.success) return `header: ${header.error.issues[0]?.path.join('.') ?? ''}`
  const body = bodySchema.safeParse(bodyValue)
  if (!body.success) return `body: ${body.error.issues[0]?.path.join('.') ?? ''}`
  return body.data.tenant_id === header.data.tenant_id ? null : 'body: tenant_id'
}
