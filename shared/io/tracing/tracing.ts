/**
 * What tracing is for the rest of the code: traces and spans, free of any package. Only a sampled
 * fraction of traces has spans; the first process of a trace decides, and the others follow it.
 */
import type { z } from 'zod'
import { variables } from '#shared/io/process/config.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

/** What a span is about: ids of tenants and events, counts and outcomes. Never what clients sent. */
export type SpanAttributes = Record<string, string | number | boolean>

export type SpanStart = {
  kind: 'server' | 'client' | 'producer' | 'consumer'
  attributes: SpanAttributes
  /** How long ago it started, in ms; 0 when left out. */
  agoMs?: number
}

/** A sampled span. It is exported once it has ended. */
export type Span = {
  /** The header by which a receiver continues the trace. */
  readonly traceparent: string
  startChild: (name: string, start: SpanStart) => Span
  end: (outcome?: { attributes?: SpanAttributes; isFailed?: boolean }) => void
}

export type Tracing = {
  /**
   * Starts a trace. A client's `traceparent` becomes a link of its first span: clients neither
   * choose what is sampled nor write into another trace.
   * @param link a client's header, in any form
   * @returns null when the trace is not sampled
   */
  startTrace: (
    name: string,
    start: SpanStart & { link?: string | string[] | undefined },
  ) => Span | null
  /**
   * Continues a trace that another process has sampled.
   * @returns null when the header is not valid or not sampled, or too many traces go on already
   */
  continueTrace: (name: string, traceparent: string, start: SpanStart) => Span | null
}

/** The settings of every traced process, with the standard names of OpenTelemetry. */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: variables.OTEL_EXPORTER_OTLP_ENDPOINT,
  OTEL_EXPORTER_OTLP_HEADERS: variables.OTEL_EXPORTER_OTLP_HEADERS,
  OTEL_TRACES_SAMPLER: variables.OTEL_TRACES_SAMPLER,
  OTEL_TRACES_SAMPLER_ARG: variables.OTEL_TRACES_SAMPLER_ARG,
  OTEL_SERVICE_NAME: variables.OTEL_SERVICE_NAME,
  OTEL_RESOURCE_ATTRIBUTES: variables.OTEL_RESOURCE_ATTRIBUTES,
} as const

export type TracingConfig = z.output<z.ZodObject<typeof tracingVariables>>

export type TracingOptions = {
  /** The name of the process, unless `OTEL_SERVICE_NAME` is set. */
  service: string
  log: Log
  metrics: Metrics
}
