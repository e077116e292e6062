/**
 * Logs every refused request with its request id and reason. Under a flood it writes a limited
 * number of lines per second and one line with the number left out.
 */
import { parseAddress, toStoredNetwork } from '#shared/core/network/address.ts'
import type { Log } from '#shared/io/process/log.ts'

/** Contains no body, header value or requested path. */
type RefusedRequest = {
  requestId: string
  /** The event of a request of ingest, once it is known. */
  eventId?: string | undefined
  status: number
  /** The problem's code. */
  code: string
  /** More detail, from a closed set. */
  reason?: string
  method: string
  /** The route's pattern, not the requested path. */
  route: string
  /** The client's address; the line has its network, and the address is for debugging alone. */
  source: string
}

export type RefusalLog = (refused: RefusedRequest) => void

const linesPerSecond = 20
const windowMs = 1_000

/** @returns a function that logs a refusal, or counts it while too many are logged */
export function createRefusalLog(log: Log): RefusalLog {
  let lines = 0
  let leftOut: Record<string, number> = {}
  let counting = false
  const endWindow = (): void => {
    counting = false
    lines = 0
    if (Object.keys(leftOut).length === 0) return
    log.warn({ left_out: leftOut }, 'more requests were refused than are logged')
    leftOut = {}
  }
  return ({ requestId, eventId, status, code, reason, method, route, source }) => {
    if (!counting) setTimeout(endWindow, windowMs).unref()
    counting = true
    if (lines >= linesPerSecond) {
      leftOut[code] = (leftOut[code] ?? 0) + 1
      return
    }
    lines++
    const more = reason === undefined ? {} : { reason }
    const event = eventId === undefined ? {} : { event_id: eventId }
    const of = { request_id: requestId, ...event, status, code, ...more, method, route }
    log.info({ ...of, source: toNetwork(source) }, 'a request was refused')
    log.debug({ request_id: requestId, address: source }, 'it came from this address')
  }
}

/** Who keeps a log keeps no addresses: a network tells one flood from another. */
function toNetwork(source: string): string {
  const words = parseAddress(source)
  return words === null ? source : toStoredNetwork(words)
}
