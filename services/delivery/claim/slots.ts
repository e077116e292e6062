/**
 * Who may send how much at once. Bounded in all, per tenant, and for retries within both, so that
 * first attempts always have room that retries cannot take. A tenant's own bound follows its
 * receiver: it shrinks while requests hang and grows while they are quick, so tenants whose
 * receivers are dead end up holding one slot each.
 */
import { LRUCache } from 'lru-cache'
import { tenantRoomsMax } from '#shared/core/deliveries/delivery-limits.ts'
import type { Lane } from '#shared/io/deliveries/delivery-claim-store.ts'

export type SlotBounds = {
  /** Requests in flight in all. */
  total: number
  /** Retries among them. */
  retries: number
  /** Requests in flight of one tenant, once its receiver has shown that it is quick. */
  perTenant: number
}

export type Slots = {
  /** Takes up to `wanted` slots for a lane and says how many. */
  take: (lane: Lane, wanted: number) => number
  /** Gives slots of a lane back. */
  give: (lane: Lane, count: number) => void
  /** Notes how long a request held its slot, which it still has, and whether it was delivered. */
  noteHeld: (tenantId: string, heldMs: number, ok: boolean) => void
  /** Slots that nobody holds. */
  free: () => number
  inFlight: () => number
}

/** What a tenant begins with: enough to be quick, little enough to risk on an unknown receiver. */
const firstRoom = 4

/** A request this quick lets its tenant's room grow; one this slow halves it. */
const quickMs = 2_000
const slowMs = 5_000

/** What a tenant has in flight, with its room, which is not forgotten meanwhile. */
type Held = { all: number; retries: number; room: number }

export function createSlots(bounds: SlotBounds): Slots {
  const held = new Map<string, Held>()
  // Of tenants with nothing in flight; whose is forgotten begins anew, with a first room.
  const rooms = new LRUCache<string, number>({ max: tenantRoomsMax })
  let inFlight = 0
  let retriesInFlight = 0

  const heldBy = (tenantId: string): Held =>
    held.get(tenantId) ?? {
      all: 0,
      retries: 0,
      room: Math.min(rooms.get(tenantId) ?? firstRoom, bounds.perTenant),
    }
  const roomFor = ({ tenantId, retry }: Lane): number => {
    const own = heldBy(tenantId)
    const { room } = own
    const left = Math.min(bounds.total - inFlight, room - own.all)
    if (!retry) return Math.max(0, left)
    // Half of a tenant's room as well: its new alerts do not wait behind its own backlog.
    const ownRetries = Math.max(1, room >> 1) - own.retries
    return Math.max(0, Math.min(left, bounds.retries - retriesInFlight, ownRetries))
  }
  const add = ({ tenantId, retry }: Lane, count: number): void => {
    const own = heldBy(tenantId)
    own.all += count
    inFlight += count
    if (retry) {
      own.retries += count
      retriesInFlight += count
    }
    if (own.all > 0) held.set(tenantId, own)
    else {
      held.delete(tenantId)
      // What a tenant begins with needs no memory.
      if (own.room === firstRoom) rooms.delete(tenantId)
      else rooms.set(tenantId, own.room)
    }
  }

  return {
    take: (lane, wanted) => {
      const count = Math.min(wanted, roomFor(lane))
      if (count > 0) add(lane, count)
      return count
    },
    give: (lane, count) => {
      if (count > 0) add(lane, -count)
    },
    noteHeld: (tenantId, heldMs, ok) => {
      const own = held.get(tenantId)
      if (own === undefined) return
      const { room } = own
      // A receiver that fails quickly earns nothing: its backlog would go out in one burst.
      const quick = ok ? room * 2 : room
      const next = heldMs < quickMs ? quick : heldMs < slowMs ? room : room >> 1
      own.room = Math.max(1, Math.min(next, bounds.perTenant))
    },
    free: () => bounds.total - inFlight,
    inFlight: () => inFlight,
  }
}
