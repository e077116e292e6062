/**
 * Classifies errors of JetStream by the client's code or the server's err_code, and by text only
 * where there is no code.
 */
import { ErrorCode } from 'nats'

/** The server's err_codes that this code uses, named as in nats-server's errors.json. */
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
  /** The store failed: the stream or its disk is full. */
  streamStoreFailed: 10077,
  /** The same as `streamWrongLastSequence`, without the sequence in its text. */
  streamWrongLastSequenceConstant: 10164,
} as const

/** An error response of JetStream. */
export type JetstreamFailure = { err_code?: number; description?: string }

/** Whether the server refused a request with one of these err_codes. */
export function isJetstreamError(error: unknown, ...codes: readonly number[]): boolean {
  const { api_error: failure } = error as { api_error?: JetstreamFailure }
  return codes.includes(failure?.err_code ?? 0)
}

/** Whether a stream, a consumer or a message does not exist. */
export function isNotFound(error: unknown): boolean {
  return (error as { code?: string }).code === ErrorCode.JetStream404NoMessages
}

/** Whether a message does not exist, or was removed. */
export function isMessageGone(error: unknown): boolean {
  const { noMessageFound, sequenceNotFound } = jetstreamCodes
  return isNotFound(error) || isJetstreamError(error, noMessageFound, sequenceNotFound)
}

/** Whether a consumer or its stream is missing, in any of the forms in which the client says so. */
export function isConsumerMissing(error: unknown): boolean {
  const { message } = error as { message?: string }
  return isNotFound(error) || /not found|no responders|consumer deleted/i.test(message ?? '')
}

/** Whether no one subscribes to the subject: the stream is gone, or has no leader. */
export function hasNoResponders(error: unknown): boolean {
  return (error as { code?: string }).code === ErrorCode.NoResponders
}

/** Whether servers have not formed a cluster yet: no peers, no leader, or no answer. */
export function isForming(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return (
    code === ErrorCode.NoResponders ||
    code === ErrorCode.Timeout ||
    /no suitable peers/.test(message ?? '')
  )
}

/** Whether a server or account has too little storage left for the request. */
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

/** Whether a write was refused because another write changed the key in between. */
export function isWrongRevision(error: unknown): boolean {
  const { streamWrongLastSequence, streamWrongLastSequenceConstant } = jetstreamCodes
  return isJetstreamError(error, streamWrongLastSequence, streamWrongLastSequenceConstant)
}

/** Whether a stream is full. By text: a full disk has the same err_code. */
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
 * Whether a retry is useless for now: the store failed, storage or resources are exhausted, the
 * account's limit is reached, or the message is too large. Nothing was stored.
 */
export function isFinal({ err_code: code = 0 }: JetstreamFailure): boolean {
  return finalCodes.has(code)
}
