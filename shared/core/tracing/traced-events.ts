/**
 * The header of a batch message that names its traced events: `<event id>=<traceparent>` of each,
 * with commas between them. A message without traced events has no such header.
 */
import { tracedEventsPerMessageMax } from '#shared/core/base/limits/tracing.ts'
import { parseTraceparent } from './traceparent.ts'

export type TracedEvent = { eventId: string; traceparent: string }

/** Leaves out events beyond the limit. @returns an empty text when there are none */
export function encodeTracedEvents(events: readonly TracedEvent[]): string {
  return events
    .slice(0, tracedEventsPerMessageMax)
    .map(({ eventId, traceparent }) => `${eventId}=${traceparent}`)
    .join()
}

/** Leaves out entries beyond the limit and entries that are not valid. */
export function decodeTracedEvents(header: string): TracedEvent[] {
  if (header === '') return []
  return header.split(',', tracedEventsPerMessageMax).flatMap((entry) => {
    const at = entry.indexOf('=')
    const [eventId, traceparent] = [entry.slice(0, at), entry.slice(at + 1)]
    return at > 0 && parseTraceparent(traceparent) !== null ? [{ eventId, traceparent }] : []
  })
}
