// Accepted events for tests: bodies as an edge accepts them, scored as an edge scores them, and the
// batch messages that contain them.
import { toEventId } from '#shared/core/base/ids.ts'
import { batchEventsMax } from '#shared/core/base/limits/ingest.ts'
import { encodeRegistration, type Registration } from '#shared/core/installs/registration.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import {
  type AcceptedEvent,
  decodeBatch,
  type EventHeader,
  encodeEventHead,
  encodeRegistrationHead,
  toStreamOffset,
} from '#shared/core/telemetry/event-batch.ts'
import { findBeyondCatalog } from '#shared/core/telemetry/fast-path.ts'

export type EventFacts = {
  tenantId?: string
  deviceId?: string
  sessionId?: string
  userId?: string
  accountId?: string | undefined
  receivedAtMs?: number
  signals?: Record<string, unknown>
  /** What the edge observed or verified. */
  serverSignals?: ServerSignals
  /** Makes bodies of otherwise equal facts differ. */
  nonce?: number | string
  policy?: Policy
  /** The install whose key signed it. */
  install?: EventHeader['install']
  /** Where it came from. */
  connection?: EventHeader['connection'] | undefined
  /** More fields of the body. */
  more?: Record<string, unknown>
}

/** Signals that lead to each action under the default policy. */
export const signalsOf = {
  ALLOW: {},
  REVIEW: { root: { magisk_detected: true } },
  BLOCK: { debugger: { frida_detected: true } },
} as const satisfies Record<string, Record<string, unknown>>

export function makeBody(facts: EventFacts): string {
  return JSON.stringify({
    tenant_id: facts.tenantId ?? 'acme',
    device_id: facts.deviceId ?? 'device-1',
    session_id: facts.sessionId ?? 'session-1',
    ...(facts.userId === undefined ? {} : { user_id: facts.userId }),
    ...(facts.accountId === undefined ? {} : { account_id: facts.accountId }),
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'launch' },
    scorer: { rasp_score: 12, rasp_action: 'ALLOW', rasp_flags: ['CLIENT_FLAG'] },
    signals: {
      root: {},
      emulator: {},
      debugger: {},
      tamper: {},
      ecosystem: {},
      network: {},
      ...facts.signals,
    },
    ...(facts.nonce === undefined ? {} : { nonce: facts.nonce }),
    ...facts.more,
  })
}

/** One element of a batch message. */
export function makeElement(facts: EventFacts): string {
  const policy = facts.policy ?? defaultPolicy
  const bodyText = makeBody(facts)
  const body = JSON.parse(bodyText) as {
    signals: Signals
    sdk_meta: { sdk_version: string; platform: string }
  }
  const receivedAtMs = facts.receivedAtMs ?? Date.now()
  const { sdk_version: sdkVersion, platform } = body.sdk_meta
  const { serverSignals } = facts
  const context = { sdkVersion, platform, receivedAtMs }
  const score = compilePolicy(policy)(body.signals, context, serverSignals)
  const header = {
    event_id: toEventId(Buffer.from(bodyText)),
    tenant_id: facts.tenantId ?? 'acme',
    received_at: receivedAtMs,
    rasp_score: score.score,
    rasp_action: score.action,
    reasons: score.reasons,
    policy_version: 1,
    policy_hash: toPolicyHash(policy),
    epoch: 1,
    ...(facts.install === undefined ? {} : { install: facts.install }),
    ...(findBeyondCatalog(body).inexactNumbers ? { inexact_numbers: true as const } : {}),
    ...(serverSignals === undefined ? {} : { server_signals: serverSignals }),
    ...(facts.connection === undefined ? {} : { connection: facts.connection }),
  }
  return encodeEvent(header, bodyText)
}

/** A registration as an edge writes it: one without evidence, unless facts say otherwise. */
export function makeRegistration(facts: Partial<Registration> = {}): Registration {
  return {
    tenant_id: 'acme',
    device_id: 'device-1',
    platform: 'android',
    app_id: 'com.acme.bank',
    provider: 'none',
    verdict: 'none',
    reason: null,
    level: 'none',
    attested_key: null,
    issuers: [],
    remotely_provisioned: false,
    device_model: '',
    root_epoch: 1,
    token_id: 'token-1',
    expires_at: 1_800_000_000_000,
    ...facts,
  }
}

/** One element of a batch message. */
export function makeRegistrationElement(
  facts: Partial<Registration>,
  receivedAtMs = Date.now(),
): string {
  const registration = makeRegistration(facts)
  const { id, body } = encodeRegistration(registration)
  const header = { event_id: id, tenant_id: registration.tenant_id, received_at: receivedAtMs }
  return `${encodeRegistrationHead({ registration: true, ...header }, body.length)}${body}}`
}

/** A batch message of these events. */
export function makeMessage(events: readonly EventFacts[]): Buffer {
  return Buffer.from(`[${events.map(makeElement).join(',')}]`)
}

/** Events as the scorer decodes them from the messages of a stream, starting at this sequence. */
export function makeEvents(events: readonly EventFacts[], sequence = 1): AcceptedEvent[] {
  const made: AcceptedEvent[] = []
  for (let at = 0; at < events.length; at += batchEventsMax) {
    const message = makeMessage(events.slice(at, at + batchEventsMax))
    const streamOffset = toStreamOffset(0, sequence + at / batchEventsMax)
    const { events: decoded, invalid } = decodeBatch(message, streamOffset)
    if (invalid.length > 0) throw new Error(`an event is not valid: ${invalid[0]?.detail}`)
    made.push(...decoded)
  }
  return made
}

/** One element of a batch message, as the edge's group commit writes it. */
export function encodeEvent(header: EventHeader, bodyText: string): string {
  return `${encodeEventHead(header, Buffer.byteLength(bodyText))}${bodyText}}`
}
