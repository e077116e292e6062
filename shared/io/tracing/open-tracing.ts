/**
 * Opens tracing by OpenTelemetry. It is off, and no package of OpenTelemetry is loaded, unless
 * `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
 */
import type { StopSteps } from '#shared/io/process/lifecycle.ts'
import type { Tracing, TracingConfig, TracingOptions } from './tracing.ts'

/**
 * Call it before other steps of a stop are registered: spans of the last requests are exported too.
 * @returns null when tracing is off
 */
export async function openTracing(
  config: TracingConfig,
  { lifecycle, ...options }: TracingOptions & { lifecycle: StopSteps },
): Promise<Tracing | null> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return null
  const { startTracing } = await import('./start-tracing.ts')
  const { tracing, stop } = startTracing(config, options)
  lifecycle.onStop('tracing', stop)
  return tracing
}
