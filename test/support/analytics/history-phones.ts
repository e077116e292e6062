/**
 * The phones of the planned history, a pure function of its events: of every ten devices the last
 * is on the phone of the first, and of every fifty the last four are on one phone.
 */
import type { LinkFact } from '../identity/phone-links.ts'
import type { HistoryEvent } from './history-alerts.ts'

/** The place, among the devices by their first event, of the first install on a device's phone. */
function toFirst(place: number): number {
  const ofFifty = place % 50
  if (ofFifty >= 46) return place - ofFifty + 45
  return place % 10 === 9 ? place - 9 : place
}

const evidence = [
  { field: 'identifier media_drm_id', level: 1, weight: 9.4, holders: 1 },
  { field: 'traits', level: 2, weight: 6.1, holders: 2 },
]

/** What was decided of every device that sent an event, by the time of its first. */
export function makeLinks(events: readonly HistoryEvent[]): LinkFact[] {
  const firsts = new Map<string, HistoryEvent['event']>()
  for (const { event } of events) {
    if (!firsts.has(event.body.device_id)) firsts.set(event.body.device_id, event)
  }
  const devices = [...firsts.values()]
  return devices.map(({ tenant_id: tenantId, received_at: atMs, body }, place) => {
    const first = toFirst(place)
    const own = { tenantId, deviceId: body.device_id, atMs }
    if (first === place) return own
    const firstDeviceId = devices[first]!.body.device_id
    return { ...own, firstDeviceId, confidence: 0.995, evidence }
  })
}
