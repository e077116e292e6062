/** The reference model of signal changes: from the bodies of events, signal by signal. */
import type { SignalChange, SignalState } from '#shared/core/devices/signal-changes.ts'
import { detectedWhenFalse, watchedSignals } from '#shared/core/signals/watched-signals.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

export type ModelHistory = {
  changes: SignalChange[]
  /** By signal: first and last detection, and its latest measured state. */
  signals: Map<string, { firstAtMs: number; lastAtMs: number; state: SignalState | null }>
}

/** @param received events of one device, in the order of inserts; with repeats and in any order */
export function modelSignalHistory(received: readonly AcceptedEvent[]): ModelHistory {
  const firstEvents = new Map<string, AcceptedEvent>()
  for (const event of received) {
    const known = firstEvents.get(event.event_id)
    if (known === undefined || event.received_at < known.received_at) {
      firstEvents.set(event.event_id, event)
    }
  }
  const events = [...firstEvents.values()].sort(
    (a, b) => a.received_at - b.received_at || (a.event_id < b.event_id ? -1 : 1),
  )
  const history: ModelHistory = { changes: [], signals: new Map() }
  const names = new Set(events.flatMap((event) => measured(event).map(([name]) => name)))
  for (const signal of names) {
    const watched = watchedSignals.includes(signal)
    let state: SignalState | null = null
    for (const event of events) {
      const found = measured(event).find(([name]) => name === signal)
      if (found === undefined) continue
      const now = found[1] ? 'detected' : 'clean'
      const span = history.signals.get(signal)
      const add = (change: SignalChange['change']) => {
        const { received_at: atMs, event_id: eventId, body } = event
        history.changes.push({ atMs, signal, change, eventId, sessionId: body.session_id })
      }
      if (now === 'detected' && span === undefined) add('appeared')
      else if (watched && state === 'detected' && now === 'clean') add('went')
      else if (watched && state === 'clean' && now === 'detected') add('returned')
      state = now
      const kept = watched ? state : null
      if (now === 'detected') {
        const firstAtMs = span?.firstAtMs ?? event.received_at
        history.signals.set(signal, { firstAtMs, lastAtMs: event.received_at, state: kept })
      } else if (span !== undefined) span.state = kept
    }
  }
  return history
}

function measured({ body }: AcceptedEvent): [signal: string, detected: boolean][] {
  return Object.entries(body.signals).flatMap(([category, signals]) =>
    Object.entries(signals ?? {}).flatMap(([name, value]): [string, boolean][] => {
      const signal = `${category}.${name}`
      if (typeof value !== 'boolean') return []
      return [[signal, value !== detectedWhenFalse.has(signal)]]
    }),
  )
}
