/** Makes spans, and exports them by OTLP over HTTP. `openTracing` loads it when tracing is on. */
import {
  type Attributes,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { spanFlushMaxMs, tracesPerSecondMax } from '#shared/core/base/limits/tracing.ts'
import { fullBucket, type Rate, takeToken } from '#shared/core/http/rate-limit.ts'
import {
  formatTraceparent,
  parseTraceparent,
  type TraceContext,
} from '#shared/core/tracing/traceparent.ts'
import packageFile from '../../../package.json' with { type: 'json' }
import { createSpanProcessor } from './export-spans.ts'
import type { Span, SpanStart, Tracing, TracingConfig, TracingOptions } from './tracing.ts'

const rate: Rate = { perSecond: tracesPerSecondMax, burst: tracesPerSecondMax }

/** @returns also a function that exports the last spans, within its time limit */
export function startTracing(
  config: TracingConfig,
  { service, log, metrics }: TracingOptions,
): { tracing: Tracing; stop: () => Promise<void> } {
  const { OTEL_EXPORTER_OTLP_HEADERS: headers = {} } = config
  // It reads the address and further settings from the environment.
  const exporter = new OTLPTraceExporter({ headers })
  const provider = new TracerProvider({
    resource: describeProcess(service),
    sampler: toSampler(config),
    spanProcessors: [createSpanProcessor(exporter, { log, metrics })],
  })
  const tracer = provider.getTracer(packageFile.name, packageFile.version)
  const bucket = fullBucket(rate, performance.now())
  const isAllowed = () => takeToken(bucket, rate, performance.now()).allowed
  return {
    tracing: {
      startTrace: (name, { link, ...start }) => {
        const client = typeof link === 'string' ? parseTraceparent(link) : null
        const links = client === null ? [] : [{ context: toSpanContext(client) }]
        const span = startSpan(tracer, name, { ...start, links, parent: null })
        return span.isRecording() && isAllowed() ? toSpan(tracer, span) : null
      },
      continueTrace: (name, traceparent, start) => {
        const context = parseTraceparent(traceparent)
        if (context?.isSampled !== true || !isAllowed()) return null
        const span = startSpan(tracer, name, { ...start, parent: toSpanContext(context) })
        return span.isRecording() ? toSpan(tracer, span) : null
      },
    },
    stop: async () => {
      const limit = new Promise((resolve) => setTimeout(resolve, spanFlushMaxMs).unref())
      await Promise.race([provider.shutdown().catch(() => undefined), limit])
    },
  }
}

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const

function startSpan(
  tracer: Tracer,
  name: string,
  start: SpanStart & { parent: SpanContext | null; links?: { context: SpanContext }[] },
): OtelSpan {
  const { parent, kind, attributes, links = [], agoMs = 0 } = start
  const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
  const startTime = Date.now() - agoMs
  return tracer.startSpan(name, { kind: kinds[kind], attributes, links, startTime }, context)
}

function toSpan(tracer: Tracer, span: OtelSpan): Span {
  const context = span.spanContext()
  const { traceId, spanId } = context
  return {
    traceparent: formatTraceparent({ traceId, spanId, isSampled: true }),
    startChild: (name, start) =>
      toSpan(tracer, startSpan(tracer, name, { ...start, parent: context })),
    end: ({ attributes, isFailed = false } = {}) => {
      if (attributes !== undefined) span.setAttributes(attributes as Attributes)
      if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
  }
}

function toSpanContext({ traceId, spanId, isSampled }: TraceContext): SpanContext {
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return { traceId, spanId, traceFlags, isRemote: true }
}

/** What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say of the process wins. */
function describeProcess(service: string): Resource {
  const own = resourceFromAttributes({
    'service.namespace': packageFile.name,
    'service.name': service,
    'service.version': packageFile.version,
  })
  const detectors = [
    serviceInstanceIdDetector,
    resourceAttributesEnvDetector,
    serviceNameEnvDetector,
  ]
  return defaultResource().merge(own).merge(detectResources({ detectors }))
}

function toSampler(config: TracingConfig): Sampler {
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio } = config
  const root = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }[name.replace('parentbased_', '') as 'always_on' | 'always_off' | 'traceidratio']()
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}
