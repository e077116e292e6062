/**
 * What someone tries who captured a phone's request, or has its token: each must be refused with
 * 401, but for the same bytes again, which are the same event.
 */
import { sendTelemetry } from '../../../shared/client/client.ts'
import { addMismatch } from '../send/sent-events.ts'
import { type Exchange, type Registered, sendOne, statusOf } from './exchange.ts'

export type Attack = { what: string; tried: number; refused: number }

/** Phones whose requests are captured. */
const victimsMax = 20

/** Tries each attack on some phones, and records what was not refused. */
export async function attackAll(
  exchange: Exchange,
  registered: readonly Registered[],
): Promise<Attack[]> {
  const victims = registered.filter(({ events }) => events.length > 0).slice(0, victimsMax)
  const attacks: Attack[] = []
  for (const [what, attack] of Object.entries(attempts)) {
    let refused = 0
    for (const [index, victim] of victims.entries()) {
      const other = victims[(index + 1) % victims.length]!
      if (exchange.stop.aborted || other === victim) break
      const status = await statusOf(attack(exchange, victim, other))
      const device_id = victim.member.phone.deviceId
      if (status === 401) refused += 1
      else addMismatch(exchange.mismatches, { what, device_id, expected: 401, got: status })
    }
    attacks.push({ what, tried: victims.length, refused })
  }
  for (const victim of victims) {
    if (!exchange.stop.aborted) await repeat(exchange, victim)
  }
  return attacks
}

type Attempt = (exchange: Exchange, victim: Registered, other: Registered) => Promise<unknown>

/** Another last character of the MAC. */
const forge = (token: string): string => `${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}A`

const attempts: Record<string, Attempt> = {
  /** The phone's body under the token and the key of another. */
  body_of_another_device: (exchange, victim, other) =>
    sendOne(exchange, other, victim.events[0]!.body, false),
  /** The phone's token, signed with the tenant's secret. */
  token_without_its_key: ({ ingestUrl, hmacSecret }, victim) => {
    const { installToken: token } = victim.install
    return sendTelemetry(victim.events[0]!.body, {
      ingestUrl,
      install: { token, key: hmacSecret },
    })
  },
  token_that_was_changed: ({ ingestUrl }, victim) => {
    const { installToken: token, installKey: key } = victim.install
    const install = { token: forge(token), key }
    return sendTelemetry(victim.events[0]!.body, { ingestUrl, install })
  },
}

/** A retry: the same event, which is not stored twice. */
async function repeat(exchange: Exchange, victim: Registered): Promise<void> {
  const [first] = victim.events
  const answer = await sendOne(exchange, victim, first!.body, false).catch((error: Error) => error)
  const got = answer instanceof Error ? answer.message : answer.event_id
  if (got === first!.eventId) return
  const device_id = victim.member.phone.deviceId
  const mismatch = { what: 'repeated_event', device_id, expected: first!.eventId, got }
  addMismatch(exchange.mismatches, mismatch)
}
