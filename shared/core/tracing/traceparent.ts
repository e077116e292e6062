/** The `traceparent` header of W3C Trace Context, version 00. */

/** The place of a span in its trace. Both ids are lower-case hexadecimal. */
export type TraceContext = {
  /** 32 digits. */
  traceId: string
  /** 16 digits. */
  spanId: string
  isSampled: boolean
}

const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])$/
const noTraceId = '0'.repeat(32)
const noSpanId = '0'.repeat(16)

/** @returns null when it is not exactly a header of version 00 */
export function parseTraceparent(header: string | undefined): TraceContext | null {
  const [, traceId, spanId, flags] = pattern.exec(header ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  if (traceId === noTraceId || spanId === noSpanId) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}
