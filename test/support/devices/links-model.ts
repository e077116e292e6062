/**
 * The reference model of links: shared devices and users, from the events alone and by the
 * definition.
 */
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'

export type ModelLink = {
  id: string
  lastSeenAtMs: number
  shared: { id: string; lastSeenAtMs: number }[]
  sessions: number
}

type Sight = { device: string; session: string; users: string[]; atMs: number }

const toSight = ({ body, received_at: atMs }: AcceptedEvent): Sight => ({
  device: body.device_id,
  session: body.session_id,
  users: [body.user_id, body.account_id].filter(
    (id): id is string => id !== undefined && id !== '',
  ),
  atMs,
})

const isReal = (id: string) => !isPlaceholderId(id)
const lastOf = (sights: readonly Sight[]) => Math.max(...sights.map(({ atMs }) => atMs))

/** Other devices of one tenant's events that share a user or a session with a device, by id. */
export function linkedDevices(events: readonly AcceptedEvent[], of: string): ModelLink[] {
  const sights = events.map(toSight)
  const own = sights.filter(({ device }) => device === of && isReal(of))
  const users = new Set(own.flatMap((one) => one.users).filter(isReal))
  const sessions = new Set(own.map(({ session }) => session).filter(isReal))
  const others = new Set(sights.map(({ device }) => device).filter((id) => id !== of))
  return [...others].filter(isReal).flatMap((id) => {
    const its = sights.filter(({ device }) => device === id)
    const shared = [...users].flatMap((user) => {
      const seen = its.filter((one) => one.users.includes(user))
      return seen.length === 0 ? [] : [{ id: user, lastSeenAtMs: lastOf(seen) }]
    })
    const inSessions = its.filter(({ session }) => sessions.has(session))
    if (shared.length === 0 && inSessions.length === 0) return []
    const times = [...shared.map((one) => one.lastSeenAtMs), ...inSessions.map(({ atMs }) => atMs)]
    const count = new Set(inSessions.map(({ session }) => session)).size
    return [{ id, lastSeenAtMs: Math.max(...times), shared, sessions: count }]
  })
}

/** Other users of one tenant's events that share a device with a user, by id. */
export function linkedUsers(events: readonly AcceptedEvent[], of: string): ModelLink[] {
  const sights = events.map(toSight).filter(({ device }) => isReal(device))
  const own = sights.filter(({ users }) => users.includes(of) && isReal(of))
  const devices = new Set(own.map(({ device }) => device))
  const others = new Set(sights.flatMap(({ users }) => users).filter((id) => id !== of))
  return [...others].filter(isReal).flatMap((id) => {
    const shared = [...devices].flatMap((device) => {
      const seen = sights.filter((one) => one.device === device && one.users.includes(id))
      return seen.length === 0 ? [] : [{ id: device, lastSeenAtMs: lastOf(seen) }]
    })
    if (shared.length === 0) return []
    const lastSeenAtMs = Math.max(...shared.map((one) => one.lastSeenAtMs))
    return [{ id, lastSeenAtMs, shared, sessions: 0 }]
  })
}
