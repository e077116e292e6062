/** Bounds of tracing: what clients can cause, and what spans may cost a process and the collector. */

/**
 * The sampled fraction of traces when `OTEL_TRACES_SAMPLER_ARG` is not set. An edge at 5,000
 * events/s starts 50 traces a second.
 */
export const sampledRatioDefault = 0.01

/**
 * Traces that a process starts or continues per second, and at once, whatever its ratio is: four
 * times what an edge starts at 5,000 events/s by default. A trace has two spans in a process at
 * most, and a span some 700 bytes as JSON, so a process sends 280 KB/s at most.
 */
export const tracesPerSecondMax = 200

/**
 * Events of one message whose traces go on in the scorer. An entry has some 85 bytes, so the header
 * has 5.4 KB at most. A message has 256 events, of which three are sampled by default.
 */
export const tracedEventsPerMessageMax = 64

/**
 * Spans that wait for the collector, those of an export in progress included; further ones are
 * dropped and counted. A span takes some 2 KB of memory, so they take 4 MB at most. At the rate
 * above they last five seconds.
 */
export const spansWaitingMax = 2_048

/** Spans of one export: some 360 KB of JSON. */
export const spansPerExportMax = 512

/** How long spans wait for others before they are exported. */
export const spanExportDelayMs = 2_000

/** How long an export may take, retries included; then its spans count as failed. */
export const spanExportTimeoutMs = 10_000

/**
 * How long a stop waits until the last spans are exported. The steps before it take seven of the
 * eight seconds of a stop.
 */
export const spanFlushMaxMs = 1_000
