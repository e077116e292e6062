/**
 * Publishes telemetry batches to a stream. A publish resolves when the stream has stored
 * the batch. A failure is either final: nothing was stored, and a retry is useless for now; or the
 * outcome is unknown, and the same bytes must be published again under the same id.
 */
import { Events, headers, type Msg, type MsgHdrs } from 'nats'
import { batchProofHeader, tracedEventsHeader } from '#shared/core/telemetry/nats-names.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import {
  isFinal,
  isStreamFull,
  type JetstreamFailure,
  jetstreamCodes,
} from '#shared/io/nats/jetstream-errors.ts'

/** Why a batch was not stored; a metric label. */
export const publishFaults = ['stream_full', 'stream_missing', 'rejected', 'no_ack'] as const
export type PublishFault = (typeof publishFaults)[number]

/** `final` when nothing was stored and an immediate retry is useless. */
class PublishError extends Error {
  readonly fault: PublishFault
  readonly final: boolean
  constructor(fault: PublishFault, final: boolean, detail = '') {
    super(`a telemetry batch was not stored: ${fault} ${detail}`)
    this.name = 'PublishError'
    this.fault = fault
    this.final = final
  }
}

/**
 * @param batchId the same for every retry of the same bytes: JetStream stores them once
 * @param timeoutMs how long to wait for the acknowledgement
 * @param tracedEvents as `encodeTracedEvents` returns them
 * @returns whether JetStream had stored the batch before, and the sequence of its message
 * @throws PublishError
 */
export type PublishBatch = (
  message: Uint8Array,
  batchId: string,
  timeoutMs: number,
  tracedEvents?: string,
) => Promise<{ duplicate: boolean; sequence: number }>

/** @param prover for the purpose 'telemetry batch' */
export function createTelemetryPublisher(
  nats: Nats,
  { stream, subject }: TelemetryStream,
  prover: Prover,
): PublishBatch {
  const request = createRequester(nats, subject)
  return async (message, batchId, timeoutMs, tracedEvents = '') => {
    const meta = headers()
    meta.set('Nats-Msg-Id', batchId)
    meta.set('Nats-Expected-Stream', stream)
    meta.set(batchProofHeader, prover.prove([], message))
    if (tracedEvents !== '') meta.set(tracedEventsHeader, tracedEvents)
    const answer = await request(message, meta, timeoutMs)
    const failure = toFailure(answer, stream)
    if (failure === null) {
      const { duplicate = false, seq: sequence = 0 } = readAck(answer!)
      return { duplicate, sequence }
    }
    throw failure
  }
}

/** JetStream's response to a publish. */
type Ack = {
  stream?: string
  seq?: number
  duplicate?: boolean
  error?: JetstreamFailure
}

/**
 * Publishes to a subject and waits for the response: null when none arrived in time, or
 * the connection broke. The client's own requests continue to wait when the connection breaks.
 */
function createRequester(
  nats: Nats,
  subject: string,
): (message: Uint8Array, meta: MsgHdrs, timeoutMs: number) => Promise<Msg | null> {
  const { connection } = nats
  const waiting = new Map<string, (answer: Msg | null) => void>()
  const inbox = nats.newInbox()
  let count = 0
  connection.subscribe(`${inbox}.*`, {
    callback: (error, answer) => {
      if (error === null) waiting.get(answer.subject)?.(answer)
    },
  })
  const watch = async () => {
    for await (const { type } of connection.status()) {
      if (type !== Events.Disconnect) continue
      for (const settle of waiting.values()) settle(null)
    }
  }
  void watch()
  return (message, meta, timeoutMs) =>
    new Promise((resolve) => {
      const reply = `${inbox}.${++count}`
      const settle = (answer: Msg | null) => {
        clearTimeout(timer)
        waiting.delete(reply)
        resolve(answer)
      }
      const timer = setTimeout(settle, timeoutMs, null)
      waiting.set(reply, settle)
      try {
        connection.publish(subject, message, { headers: meta, reply })
      } catch {
        // The connection is closed for good.
        settle(null)
      }
    })
}

/** @returns null when the response confirms that the batch is stored */
function toFailure(answer: Msg | null, expected: string): PublishError | null {
  if (answer === null) return new PublishError('no_ack', false)
  // No responders: the stream is missing, or its cluster is electing a leader.
  if (answer.headers?.code === 503) return new PublishError('stream_missing', false)
  const { stream, error } = readAck(answer)
  if (error === undefined) {
    return stream === expected ? null : new PublishError('no_ack', false)
  }
  const { err_code: code = 0, description = '' } = error
  if (code === jetstreamCodes.streamNotMatch) return new PublishError('stream_missing', true)
  const fault = isStreamFull(error) ? 'stream_full' : 'rejected'
  return new PublishError(fault, isFinal(error), `${code} ${description}`)
}

function readAck(answer: Msg): Ack {
  try {
    return answer.json<Ack>()
  } catch {
    return {}
  }
}
