/** Headers of traces: nothing but the exact format is read, and never more than the bound. */
import { expect, it } from 'vitest'
import { tracedEventsPerMessageMax } from '#shared/core/base/limits/tracing.ts'
import { decodeTracedEvents, encodeTracedEvents } from '#shared/core/tracing/traced-events.ts'
import { formatTraceparent, parseTraceparent } from '#shared/core/tracing/traceparent.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const valid = `00-${traceId}-${spanId}-01`

it('reads and writes the header of version 00', () => {
  expect(parseTraceparent(valid)).toEqual({ traceId, spanId, isSampled: true })
  expect(formatTraceparent({ traceId, spanId, isSampled: true })).toBe(valid)
  for (const [flags, isSampled] of [
    ['00', false],
    ['02', false],
    ['f3', true],
  ] as const) {
    expect(parseTraceparent(`00-${traceId}-${spanId}-${flags}`)).toMatchObject({ isSampled })
  }
})

it.each([
  undefined,
  '',
  `${valid} `,
  ` ${valid}`,
  `${valid}\n`,
  `${valid}, ${valid}`,
  `${valid}-00`,
  valid.toUpperCase(),
  `01-${traceId}-${spanId}-01`,
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.slice(1)}-${spanId}-01`,
  `00-${traceId}-${spanId}-1`,
  `00-${traceId}-${spanId}`,
  `00-${'g'.repeat(32)}-${spanId}-01`,
  'x'.repeat(60_000),
])('ignores %j', (header) => {
  expect(parseTraceparent(header)).toBeNull()
})

it('names at most as many traced events of a message as the bound allows', () => {
  const events = Array.from({ length: tracedEventsPerMessageMax + 5 }, (_, n) => ({
    eventId: `evt_${n}`,
    traceparent: valid,
  }))
  const within = events.slice(0, tracedEventsPerMessageMax)
  const header = encodeTracedEvents(events)
  expect(decodeTracedEvents(header)).toEqual(within)
  const unbounded = events.map((one) => `${one.eventId}=${one.traceparent}`).join()
  expect(decodeTracedEvents(unbounded)).toEqual(within)
  expect(encodeTracedEvents([])).toBe('')
  expect(decodeTracedEvents('')).toEqual([])
})

it('leaves out entries that are not valid', () => {
  const header = `evt_1=${valid},evt_2,=${valid},evt_3=00-1-2-01,${valid},evt_4=${valid}`
  expect(decodeTracedEvents(header).map(({ eventId }) => eventId)).toEqual(['evt_1', 'evt_4'])
})
