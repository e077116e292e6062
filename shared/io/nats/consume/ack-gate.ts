/**
 * Sends responses to deliveries. While the connection is down they wait: the stream may be put back
 * to an earlier copy meanwhile, and a late acknowledgement would then concern another message that
 * has the same sequence.
 */
import type { Nats } from '../connection.ts'

type Response = { reply: string; payload: Uint8Array; isLast: boolean }

export type AckGate = {
  /** @param start the `StreamOffsets.start` under which the message was delivered */
  respond: (start: number, response: Response) => void
  /** Responses wait from here on. */
  hold: () => void
  /** Whether the stream was put back or replaced since; false while that is unknown. */
  isPast: (start: number) => boolean
  /** Sends what waits and belongs to the present incarnation; all else is dropped. */
  open: (start: number) => void
}

export function createAckGate(nats: Nats): AckGate {
  /** Null while responses wait. */
  let present: number | null = null
  let waiting: (Response & { start: number })[] = []
  const send = ({ reply, payload }: Response) => nats.connection.publish(reply, payload)
  return {
    respond: (start, response) => {
      if (start === present) send(response)
      // A heartbeat that comes late is of no use.
      else if (present === null && response.isLast) waiting.push({ ...response, start })
    },
    hold: () => {
      present = null
    },
    isPast: (start) => present !== null && start !== present,
    open: (start) => {
      present = start
      for (const response of waiting) if (response.start === start) send(response)
      waiting = []
    },
  }
}
