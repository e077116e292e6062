/**
 * What the phones of a run do: each registers and sends two events, with evidence for their bodies.
 * Then an attacker with the tenant's secret sends for devices that never registered.
 */

import type { Scorer } from '#shared/core/scoring/scoring.ts'
import { registerInstall, sendTelemetry } from '../../../shared/client/client.ts'
import { TelemetryRefusedError } from '../../../shared/client/errors.ts'
import type { Install } from '../../../shared/client/installs/install-types.ts'
import type { IngestResult } from '../../../shared/client/telemetry.ts'
import type { Plan } from '../phones/plan.ts'
import type { Phone } from '../phones/population.ts'
import { prepareEvent } from '../phones/telemetry-bodies.ts'
import { addMismatch, type SentEvents } from '../send/sent-events.ts'
import { androidApp, type InstallPhone, iosApp } from './cast.ts'

export type Exchange = {
  ingestUrl: string
  tenantId: string
  hmacSecret: string
  stop: AbortSignal
  mismatches: SentEvents['mismatches']
}

/** An accepted event of a phone. */
export type SentEvent = { eventId: string; body: Buffer }

export type Registered = { member: InstallPhone; install: Install; events: SentEvent[] }

/** Phones that work at the same time: enough to keep an edge's threads busy. */
const phonesAtOnce = 16
const eventsPerPhone = 2

/** Runs work over items, some at a time, until it is stopped. */
async function eachAtOnce<Item>(
  items: readonly Item[],
  stop: AbortSignal,
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < items.length && !stop.aborted) {
      const index = next++
      await work(items[index]!, index)
    }
  }
  await Promise.all(Array.from({ length: phonesAtOnce }, worker))
}

export type BodyOptions = { seed: number; tenantId: string; scorer: Scorer; startedAtMs: number }

/** Makes the body of a phone's n-th event. */
export function makeBodies(phones: readonly Phone[], options: BodyOptions) {
  const { seed, tenantId, scorer, startedAtMs } = options
  const plan: Plan = {
    seed,
    phones: [...phones],
    sessions: phones.map((phone, index) => ({
      phone: index,
      sessionId: `install-${seed}-${phone.deviceId}`,
      userId: phone.users[0] ?? null,
      batches: eventsPerPhone,
    })),
    sessionOf: Uint32Array.from({ length: phones.length * eventsPerPhone }, (_, event) =>
      Math.floor(event / eventsPerPhone),
    ),
    batchOf: Uint16Array.from(
      { length: phones.length * eventsPerPhone },
      (_, event) => event % eventsPerPhone,
    ),
    eventOf: new Uint32Array(),
    atMs: new Float64Array(),
    isRepeat: new Uint8Array(),
  }
  return (phone: number, batch: number): Buffer =>
    prepareEvent(
      { plan, tenantId, scorer, startedAtMs },
      phone * eventsPerPhone + batch,
      batch * 1_000,
    ).body
}

/** Registers every phone. @returns those that have an install, in the order of the cast */
export async function registerAll(
  exchange: Exchange,
  cast: readonly InstallPhone[],
  onDone: (count: number) => void,
): Promise<Registered[]> {
  const registered: (Registered | undefined)[] = []
  let done = 0
  await eachAtOnce(cast, exchange.stop, async (member, index) => {
    const install = await registerOne(exchange, member)
    if (install !== null) registered[index] = { member, install, events: [] }
    onDone(++done)
  })
  return registered.filter((one) => one !== undefined)
}

async function registerOne(exchange: Exchange, member: InstallPhone): Promise<Install | null> {
  const { ingestUrl, tenantId, hmacSecret, stop: signal } = exchange
  const { phone, kind, attest } = member
  const { platform, id } = kind.platform === 'ios' ? iosApp : androidApp
  try {
    const install = await registerInstall({
      ingestUrl,
      tenantId,
      hmacSecret,
      signal,
      deviceId: phone.deviceId,
      app: { platform, id },
      deviceModel: phone.hardware.model,
      getEvidence: (challenge) =>
        attest?.(Buffer.from(challenge, 'base64url')) ?? { provider: 'none' },
    })
    const { provider: _unused, ...got } = install.attestation
    const expected = member.attestation
    const agrees =
      got.verdict === expected.verdict &&
      got.reason === expected.reason &&
      got.level === expected.level
    if (!agrees) {
      const what = `registration_${kind.name}`
      addMismatch(exchange.mismatches, { what, device_id: phone.deviceId, expected, got })
    }
    return install
  } catch (error) {
    if (!signal.aborted) noteFailure(exchange, 'registration_refused', phone.deviceId, error)
    return null
  }
}

const noteFailure = (exchange: Exchange, what: string, deviceId: string, error: unknown) => {
  addMismatch(exchange.mismatches, { what, device_id: deviceId, got: (error as Error).message })
}

/** Sends the events of every registered phone. */
export async function sendAll(
  exchange: Exchange,
  registered: readonly Registered[],
  bodyOf: (phone: number, batch: number) => Buffer,
): Promise<void> {
  await eachAtOnce(registered, exchange.stop, async (one) => {
    for (let batch = 0; batch < eventsPerPhone; batch++) {
      const { member } = one
      const { deviceId, index } = member.phone
      const body = bodyOf(index, batch)
      try {
        const { event_id: eventId } = await sendOne(exchange, one, body, true)
        one.events.push({ eventId, body })
      } catch (error) {
        if (exchange.stop.aborted) return
        noteFailure(exchange, 'telemetry_refused', deviceId, error)
      }
    }
  })
}

/** @param isProven whether evidence for this body goes with it, where the phone has some */
export function sendOne(
  { ingestUrl, stop: signal }: Exchange,
  { member, install }: Registered,
  body: Buffer,
  isProven: boolean,
): Promise<IngestResult> {
  const { prove } = member
  return sendTelemetry(body, {
    ingestUrl,
    signal,
    install: { token: install.installToken, key: install.installKey },
    ...(isProven && prove !== null ? { attestation: prove } : {}),
  })
}

/** Events of made-up devices, signed with the tenant's secret. @returns their ids */
export async function speakForAll(
  exchange: Exchange,
  phones: readonly Phone[],
  bodyOf: (phone: number, batch: number) => Buffer,
): Promise<string[]> {
  const { ingestUrl, hmacSecret, stop } = exchange
  const eventIds: string[] = []
  await eachAtOnce(phones, stop, async ({ deviceId }, index) => {
    try {
      const options = { ingestUrl, hmacSecret, signal: stop }
      eventIds.push((await sendTelemetry(bodyOf(index, 0), options)).event_id)
    } catch (error) {
      if (!stop.aborted) noteFailure(exchange, 'telemetry_refused', deviceId, error)
    }
  })
  return eventIds
}

/** @returns the status of the refusal, or 200 */
export async function statusOf(call: Promise<unknown>): Promise<number> {
  try {
    await call
    return 200
  } catch (error) {
    if (error instanceof TelemetryRefusedError) return error.refusal.status
    throw error
  }
}
