/**
 * Errors of JetStream told apart: by the client's code or the server's err_code, and by their text
 * only where nothing else marks them.
 */
import { ErrorCode } from 'nats'

/** The server's err_codes that code asks for by name, named as in nats-server's errors.json. */
export const jetstreamCodes = {
  accountResourcesExceeded: 10002,
  insufficientResources: 10023,
  memoryResourcesExceeded: 10028,
  noMessageFound: 10037,
  sequenceNotFound: 10043,
  storageResourcesExceeded: 10047,
  streamMessageExceedsMaximum: 10054,
  streamNotFound: 10059,
  streamNotMatch: 10060,
  streamWrongLastSequence: 10071,
  /** The store failed: the stream is full and refuses what is new, or its disk is. */
  streamStoreFailed: 10077,
  /** The same as `streamWrongLastSequence`, without the sequence in its text. */
  streamWrongLastSequenceConstant: 10164,
} as const

/** An answer of JetStream that is an error. */
export type JetstreamFailure = { err_code?: number; description?: string }

/** Whether the server refused a request with one of these err_codes. */
export function isJetstreamError(error: unknown, ...codes: readonly number[]): boolean {
  const { api_error: failure } = error as { api_error?: JetstreamFailure }
  return codes.includes(failure?.err_code ?? 0)
}

/** Whether what was asked about is not there: a stream, a consumer or a message. */
export function isNotFound(error: unknown): boolean {
  return (error as { code?: string }).code === ErrorCode.JetStream404NoMessages
}

/** The same of a message, which may also have been there once. */
export function isMessageGone(error: unknown): boolean {
  const { noMessageFound, sequenceNotFound } = jetstreamCodes
  return isNotFound(error) || isJetstreamError(error, noMessageFound, sequenceNotFound)
}

/** Whether a consumer or its stream is away, however the client came to hear of it. */
export function isConsumerMissing(error: unknown): boolean {
  const { message } = error as { message?: string }
  return isNotFound(error) || /not found|no responders|consumer deleted/i.test(message ?? '')
}

/** Whether nobody listens: what was written to is gone, or its leader is away. */
export function isUnheard(error: unknown): boolean {
  return (error as { code?: string }).code === ErrorCode.NoResponders
}

/** Whether servers are not yet a cluster: they name no peers, have no leader, or are silent. */
export function isForming(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return (
    code === ErrorCode.NoResponders ||
    code === ErrorCode.Timeout ||
    /no suitable peers/.test(message ?? '')
  )
}

/** Whether a server or account has too little storage left for what was asked. */
export function isOutOfStorage(error: unknown): boolean {
  const { accountResourcesExceeded, insufficientResources, storageResourcesExceeded } =
    jetstreamCodes
  return isJetstreamError(
    error,
    accountResourcesExceeded,
    insufficientResources,
    storageResourcesExceeded,
  )
}

/** Whether a write was refused because its key had been written meanwhile. */
export function isWrongRevision(error: unknown): boolean {
  const { streamWrongLastSequence, streamWrongLastSequenceConstant } = jetstreamCodes
  return isJetstreamError(error, streamWrongLastSequence, streamWrongLastSequenceConstant)
}

/** Whether a stream is full by its bytes or its messages: its err_code says the same of a disk. */
export function isStreamFull({ description = '' }: JetstreamFailure): boolean {
  return /maximum (bytes|messages)/.test(description)
}

const finalCodes: ReadonlySet<number> = new Set([
  jetstreamCodes.streamStoreFailed,
  jetstreamCodes.storageResourcesExceeded,
  jetstreamCodes.insufficientResources,
  jetstreamCodes.memoryResourcesExceeded,
  jetstreamCodes.accountResourcesExceeded,
  jetstreamCodes.streamMessageExceedsMaximum,
])

/**
 * Whether nothing was stored and nothing soon will be: the store failed, there is no storage or no
 * resources, the account's limit is reached, or the message is too large.
 */
export function isFinal({ err_code: code = 0 }: JetstreamFailure): boolean {
  return finalCodes.has(code)
}
