/**
 * Makes the body of every planned event, and the score that it must get. A pure function of the
 * plan, the tenant and the start of the run, so a repeat has the same bytes.
 */

import type { Score } from '#shared/core/scoring/score.ts'
import type { Scorer } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { toSignalBits } from '#shared/core/signals/watched-signals.ts'
import type { ClientVerdict } from '#shared/core/telemetry/submission.ts'
import type { EventContent } from '../send/sent-events.ts'
import { type BodyStyle, bodyStyles, toBodyText } from './body-text.ts'
import { paint } from './clean-signals.ts'
import { sendsIdentity, toDeviceMembers } from './phone-identity.ts'
import type { Plan, Session } from './plan.ts'
import type { Phone } from './population.ts'
import { createRandom, hashToUnit, type Random } from './random.ts'

export type PreparedEvent = EventContent & { body: Buffer }

type BodyOptions = {
  plan: Plan
  tenantId: string
  scorer: Scorer
  /** Wall clock of the run's start, in ms since 1970: what `occurred_at` counts from. */
  startedAtMs: number
  /** Gives `client_ip`, for a tenant that takes the address from there. */
  addressOf?: (phone: Phone) => string
}

/** Unknown signals of future SDKs; the service must keep them. */
const futureSignals = [
  ['root', 'susfs_detected', false],
  ['debugger', 'lsplant_detected', false],
  ['ecosystem', 'ai_agent_control', false],
  ['network', 'doh_resolver', 'cloudflare'],
  ['tamper', 'pi_sdk_version', { major: 4, minor: 2 }],
  ['emulator', 'gpu_renderer', 'Adreno (TM) 740'],
] as const

/** An SDK release newer than the catalog: it always reports one unknown signal. */
const aheadOfCatalog = {
  sdk: 'android',
  version: '3.1.0',
  signals: { zygisk_companion_detected: false },
} as const

/** Makes one event. `occurredMs` is when it happens, from the start of the run. */
export function prepareEvent(
  options: BodyOptions,
  event: number,
  occurredMs: number,
): PreparedEvent {
  const { plan } = options
  const sessionIndex = plan.sessionOf[event]!
  const session = plan.sessions[sessionIndex]!
  const phone = plan.phones[session.phone]!
  const batch = plan.batchOf[event]!
  const course = createRandom(plan.seed, `course:${session.sessionId}`)
  const chance = createRandom(plan.seed, `event:${event}`)
  const signals = signalsOf(phone, batch, course, chance)
  const owner = batch >= signInBatch(phone, session) ? ownerOf(phone, session) : {}
  // Suppressions of the policy depend on these.
  const scored = options.scorer(signals, {
    sdkVersion: phone.sdk.version,
    platform: phone.kind.platform,
    receivedAtMs: options.startedAtMs + occurredMs,
  })
  const value = {
    tenant_id: options.tenantId,
    device_id: phone.deviceId,
    session_id: session.sessionId,
    ...owner,
    ...(options.addressOf === undefined ? {} : { client_ip: options.addressOf(phone) }),
    ...occurredAt(options.startedAtMs + occurredMs, phone, chance),
    sdk_meta: sdkMeta(phone, batch, session, chance),
    ...context(phone, chance, { atMs: options.startedAtMs + occurredMs, event: `${event}` }),
    scorer: clientVerdict(phone, scored, chance),
    signals,
  }
  const body = Buffer.from(toBodyText(value, styleOf(phone)), 'utf8')
  return {
    event,
    session: sessionIndex,
    body,
    scored,
    client: value.scorer,
    signalBits: toSignalBits(signals),
    userIds: Object.values(owner),
  }
}

function ownerOf(phone: Phone, { userId }: Session): Record<string, string> {
  if (userId === null) return {}
  const account = phone.accountId === null ? {} : { account_id: phone.accountId }
  return { [phone.userField]: userId, ...account }
}

/** The batch in which a user signs in: some apps start without a user. */
function signInBatch(phone: Phone, session: Session): number {
  if (phone.kind.usage !== 'person' || session.batches < 2) return 0
  return hashToUnit(session.sessionId) < 0.25 ? 1 : 0
}

function signalsOf(phone: Phone, batch: number, course: Random, chance: Random): Signals {
  const { root, emulator, debugger: debug, tamper, ecosystem, network } = phone.signals
  const signals: Signals = {
    root: { ...root },
    emulator: { ...emulator },
    debugger: { ...debug },
    tamper: { ...tamper },
    ecosystem: { ...ecosystem },
    network: { ...network },
  }
  // Each batch of a session draws the same values; only `batch` differs.
  const vpnFrom = course.chance(0.03) ? course.int(1, 3) : null
  const openWifi = course.chance(0.05)
  const laterFrom = course.chance(0.3) ? 0 : 1
  if (vpnFrom !== null && batch >= vpnFrom) paint(signals, 'network', { vpn_active: true })
  if (openWifi && phone.kind.platform === 'android') {
    paint(signals, 'network', { unsecure_wifi: true })
  }
  if (batch >= laterFrom) phone.kind.later?.(signals, course)
  if (chance.chance(0.01)) paint(signals, 'ecosystem', { screenshot_taken: true })
  if (chance.chance(0.01)) paint(signals, 'ecosystem', { active_call: true })
  if (phone.sdk.name === aheadOfCatalog.sdk && phone.sdk.version === aheadOfCatalog.version) {
    paint(signals, 'root', aheadOfCatalog.signals)
  }
  if (phone.sdk.age > 0.7 && chance.chance(0.08)) {
    const [category, name, value] = chance.pick(futureSignals)
    paint(signals, category, { [name]: value })
  }
  return signals
}

function occurredAt(atMs: number, phone: Phone, chance: Random): { occurred_at?: string } {
  if (phone.clockErrorMinutes === null) return {}
  const at = new Date(atMs + phone.clockErrorMinutes * 60_000 - chance.int(2, 900))
  const text = at.toISOString()
  return { occurred_at: phone.sdk.name === 'flutter' ? text.replace('Z', '000+00:00') : text }
}

function sdkMeta(phone: Phone, batch: number, session: Session, chance: Random) {
  const last = batch > 1 && batch === session.batches - 1
  const later = last ? 'background' : chance.chance(0.8) ? 'periodic' : 'event'
  return {
    sdk_version: phone.sdk.version,
    platform: phone.kind.platform,
    batch_type: batch === 0 ? 'start' : later,
    ...(phone.sdk.name === phone.kind.platform ? {} : { framework: phone.sdk.name }),
    sequence: batch,
  }
}

function context(phone: Phone, chance: Random, { atMs, event }: { atMs: number; event: string }) {
  const { brand, model, os, apiLevel } = phone.hardware
  return {
    device: {
      brand,
      model,
      os_version: os,
      ...(apiLevel === null ? {} : { api_level: apiLevel }),
      ...(sendsIdentity(phone.sdk)
        ? toDeviceMembers(phone, atMs, event)
        : { locale: phone.locale, time_zone: phone.timezone }),
      battery_level: chance.int(3, 100) / 100,
      free_storage_mb: chance.int(300, 190_000),
    },
    app: {
      id: phone.kind.platform === 'ios' ? 'com.example.Bank' : 'com.example.bank/main',
      version: phone.appVersion,
    },
  }
}

/** The SDK's own verdict: near ours, unless the phone's user forges it. */
function clientVerdict(phone: Phone, scored: Score, chance: Random): ClientVerdict {
  if (chance.chance(phone.kind.forges)) {
    return { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] }
  }
  const noise = scored.score > 0 && chance.chance(0.35) ? chance.int(-6, 6) : 0
  const rasp_score = Math.min(100, Math.max(0, scored.score + noise))
  const fraction = phone.sdk.name === 'ios' && rasp_score > 0 && rasp_score < 100 ? 0.5 : 0
  return {
    rasp_score: rasp_score + fraction,
    rasp_action: rasp_score >= 75 ? 'BLOCK' : rasp_score >= 40 ? 'REVIEW' : 'ALLOW',
    rasp_flags: scored.reasons.map((reason) => reason.code).filter(() => !chance.chance(0.05)),
  }
}

function styleOf(phone: Phone): BodyStyle {
  switch (phone.sdk.name) {
    case 'ios':
      return bodyStyles.foundation
    case 'flutter':
      return bodyStyles.dart
    case 'server':
      return [bodyStyles.jackson, bodyStyles.python, bodyStyles.dotnet][phone.index % 3]!
    default:
      return bodyStyles.kotlinx
  }
}
