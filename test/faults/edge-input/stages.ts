/** The stages of the drill; the tests run them in a short form. */
import { toEventId } from '#shared/core/base/ids.ts'
import { exchangeRaw } from '../../support/http/raw-http.ts'
import { type HostileCase, toRequest } from '../../support/telemetry/raw-submissions.ts'
import vectors from '../../vectors/signatures.json' with { type: 'json' }
import { count } from '../support/counts.ts'
import { makeBodyCases } from './bodies.ts'
import { makeEncodingCases, makeFollowed } from './framing.ts'
import { makeExpensiveBodyCases, makeHeadCases } from './heads.ts'
import { type Breach, type HostileRig, sendAll } from './rig.ts'
import { makeFlippedAndSigned, makeSignatureCases } from './signatures.ts'

/** Cases for connections that stay open. */
function makePooledCases({ tenants }: Pick<HostileRig, 'tenants'>): HostileCase[] {
  const { acme, globex } = tenants
  return [
    ...makeSignatureCases(acme, globex),
    ...makeGoldenCases(),
    ...makeBodyCases(acme, globex),
    ...makeEncodingCases(acme),
    ...makeHeadCases(),
    ...makeExpensiveBodyCases(),
  ]
}

/** The golden vectors: the correct spelling authenticates an incomplete body. */
function makeGoldenCases(): HostileCase[] {
  const { body_base64, signature, spellings } = vectors.wrong_spellings
  const body = Buffer.from(body_base64, 'base64')
  const family = 'a golden vector'
  return [
    { family, name: 'as it is', request: toRequest(body, signature), expected: [400] },
    ...Object.entries(spellings).map(([name, spelling]) => ({
      family,
      name,
      request: toRequest(body, spelling),
      expected: [401],
    })),
  ]
}

export type Tally = {
  /** Requests sent, by family. */
  sent: Map<string, number>
  statuses: Map<number, number>
  breaches: Breach[]
}

export const newTally = (): Tally => ({ sent: new Map(), statuses: new Map(), breaches: [] })

/** Sends every pooled case and every flipped bit with a valid signature, once each. */
export async function sendPooled(rig: HostileRig, tally: Tally): Promise<void> {
  for (const cases of [makePooledCases(rig), makeFlippedAndSigned(rig.tenants.acme)]) {
    const { breaches, statuses } = await sendAll(rig, cases)
    for (const { family } of cases) count(tally.sent, family)
    for (const [status, times] of statuses) count(tally.statuses, status, times)
    tally.breaches.push(...breaches)
  }
}

/** A server that is silent for this long waits for more bytes. */
const silenceMs = 1_500
const atOnce = 8

/** Sends the cases that can break a connection, each over its own connection. */
export async function sendSmuggling(rig: HostileRig, tally: Tally): Promise<void> {
  await eachOf(rig.singles, async (one) => {
    const { statuses } = await exchangeRaw(rig.port, [one.request], silenceMs)
    count(tally.sent, one.family)
    count(tally.statuses, statuses[0] ?? 0)
    const wrong = statuses.find((status) => !one.expected.includes(status))
    if (wrong === undefined) return
    tally.breaches.push({ family: one.family, name: one.name, got: statuses.join(', ') })
  })
}

/** Refused submissions by the event id that they would have. */
export type Refused = Map<string, string>

/**
 * Sends good requests followed by bad bytes.
 * @returns those whose first response is a refusal; they must not be stored
 */
export async function sendFollowed(rig: HostileRig, tally: Tally): Promise<Refused> {
  const refused: Refused = new Map()
  await eachOf(makeFollowed(rig.tenants.acme), async ({ name, request, body }) => {
    const { statuses, text } = await exchangeRaw(rig.port, [request], silenceMs)
    count(tally.sent, 'good, and bad behind it')
    count(tally.statuses, statuses[0] ?? 0)
    const eventId = toEventId(Buffer.from(body))
    if (statuses.some((status) => status >= 500 && status !== 501 && status !== 505)) {
      const family = 'good, and bad behind it'
      tally.breaches.push({ family, name, got: statuses.join(', ') })
    }
    // Without a response the event may be stored.
    if (text.includes(eventId) || statuses.length === 0) rig.accepted.add(eventId)
    else refused.set(eventId, `${name}: ${statuses.join(', ')}`)
  })
  return refused
}

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
