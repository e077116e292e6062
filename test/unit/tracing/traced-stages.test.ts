/** The stages of a trace: each event keeps its own, and nothing is sent while tracing is off. */
import { expect, it } from 'vitest'
import { encodeTracedEvents } from '#shared/core/tracing/traced-events.ts'
import { formatTraceparent } from '#shared/core/tracing/traceparent.ts'
import type { Span, Tracing } from '#shared/io/tracing/tracing.ts'
import type { FreshClaim } from '../../../services/delivery/send/attempt-delivery.ts'
import { traceAttempt } from '../../../services/delivery/send/trace-attempt.ts'
import { tracePublish } from '../../../services/ingest/http/trace-submissions.ts'
import { traceBatch } from '../../../services/scorer/trace-batch.ts'

const at = (n: number) =>
  formatTraceparent({
    traceId: `${n}`.padStart(32, '0'),
    spanId: `${n}`.padStart(16, '0'),
    isSampled: true,
  })

/** Spans whose `traceparent` is that of their parent with 1 in front, and those that ended. */
function createFakeTracing() {
  const ended: { name: string; isFailed: boolean }[] = []
  const toSpan = (name: string, traceparent: string): Span => ({
    traceparent,
    startChild: (child) => toSpan(child, `1${traceparent}`),
    end: ({ isFailed = false } = {}) => ended.push({ name, isFailed }),
  })
  const tracing: Tracing = {
    startTrace: (name) => toSpan(name, at(9)),
    continueTrace: (name, traceparent) => toSpan(name, `1${traceparent}`),
  }
  return { tracing, ended, toSpan }
}

it('names the traced events of a message by the spans of its publish', async () => {
  const { ended, toSpan } = createFakeTracing()
  const batch = [null, toSpan('request', at(1)), null].map((span, n) => {
    return { span, acceptance: { eventId: `evt_${n}` } }
  })
  const headers: string[] = []
  await tracePublish(batch, async (header) => headers.push(header))
  await tracePublish([batch[0]!], async (header) => headers.push(header))
  expect(headers).toEqual([`evt_1=1${at(1)}`, ''])
  const failed = tracePublish(batch, () => Promise.reject(new Error('no ack')))
  await expect(failed).rejects.toThrow('no ack')
  expect(ended.map(({ isFailed }) => isFailed)).toEqual([false, true])
})

it('gives a stage the traces of the events in its batch, and ends them when it fails', async () => {
  const { tracing, ended } = createFakeTracing()
  const message = (...ns: number[]) => ({
    tracedEvents: encodeTracedEvents(ns.map((n) => ({ eventId: `evt_${n}`, traceparent: at(n) }))),
  })
  await traceBatch(tracing, 'decide', [message(1, 2), message(), message(3)], async (found) => {
    expect([...found]).toEqual([1, 2, 3].map((n) => [`evt_${n}`, `1${at(n)}`]))
  })
  const failed = traceBatch(tracing, 'store', [message(4)], () => Promise.reject(new Error('down')))
  await expect(failed).rejects.toThrow('down')
  expect(ended).toEqual([
    ...[1, 2, 3].map(() => ({ name: 'decide telemetry', isFailed: false })),
    { name: 'store telemetry', isFailed: true },
  ])
})

it('sends a receiver the traceparent of the attempt, and none while tracing is off', async () => {
  const { tracing, ended } = createFakeTracing()
  const sent: (string | null)[] = []
  const attempt = async (claimed: FreshClaim) => {
    sent.push(claimed.traceparent)
    return { next: { state: 'delivered' }, attempt: { status: 200, errorKind: null } } as never
  }
  const traced = { attempts: 0, traceparent: at(1) } as FreshClaim
  await traceAttempt(tracing, traced, attempt)
  await traceAttempt(null, traced, attempt)
  await traceAttempt(tracing, { ...traced, traceparent: null }, attempt)
  expect(sent).toEqual([`1${at(1)}`, null, null])
  expect(ended).toEqual([{ name: 'deliver webhook', isFailed: false }])
})
