/**
 * The telemetry streams by number. A tenant lies on one stream, whose number is stored with it. A
 * stream has its own sequences: offsets and watermarks of two streams cannot be compared.
 */
import { telemetryStreamsMax } from '#shared/core/base/limits/stream.ts'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'

/** The names of a telemetry stream, of its subjects and of its consumers. */
export type TelemetryStream = {
  /** From 1 on. */
  number: number
  stream: string
  /** The subject of batch messages, and every subject of the stream. */
  subject: string
  subjects: string
  /** The consumer that stores events, and the one that decides them. */
  scorer: string
  decider: string
  /** The names above without it are those of the first stream, where it is empty. */
  suffix: string
}

/** @returns the names of a stream */
export function toTelemetryStream(number: number): TelemetryStream {
  const suffix = number === 1 ? '' : `_${number}`
  const [domain, kind] = telemetrySubject.split('.')
  return {
    number,
    stream: `${telemetryStream}${suffix}`,
    subject: `${domain}${suffix}.${kind}`,
    subjects: `${domain}${suffix}.>`,
    scorer: `${scorerConsumer}${suffix}`,
    decider: `${deciderConsumer}${suffix}`,
    suffix,
  }
}

/** @returns the streams 1 to `count` */
export function listTelemetryStreams(count: number): TelemetryStream[] {
  return Array.from({ length: count }, (_, index) => toTelemetryStream(index + 1))
}

/** Every stream that there can be. */
export const telemetryStreams = listTelemetryStreams(telemetryStreamsMax)

/** Labels of a metric of one stream: with a single stream a series has none. */
export function toStreamLabels({ stream }: TelemetryStream, count: number): { stream?: string } {
  return count === 1 ? {} : { stream }
}
