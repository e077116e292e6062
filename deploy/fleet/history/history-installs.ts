/**
 * The installs of a simulated history: newer SDKs register at a phone's first session, with
 * evidence of a keystore of the phone's own, which the service's own code verifies at that time. Rooted
 * phones have unlocked bootloaders, and farms a keybox that leaked, on another model at each start.
 */

import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  noEvidence,
  toVerifiedEvidence,
  type VerifiedEvidence,
} from '#shared/core/installs/evidence-signals.ts'
import { installRootBytes, toInstallRoot } from '#shared/core/installs/install-token.ts'
import { makeRegistration } from '../../../services/ingest/installs/make-registration.ts'
import {
  createAndroidKeystore,
  createFactory,
  type Factory,
} from '../../../test/support/attestation/android-keystore.ts'
import { createAppleEnclave } from '../../../test/support/attestation/apple-enclave.ts'
import { testSigner, toRootKey } from '../../../test/support/attestation/make-android-chain.ts'
import { makeSeededKey } from '../../../test/support/attestation/seeded-key.ts'
import { androidApp, iosApp } from '../installs/cast.ts'
import type { Phone } from '../phones/population.ts'
import { createRandom, hashToUnit } from '../phones/random.ts'

/** An element of a batch message: what stands before its body, and the body. */
export type StreamElement = { head: string; body: Buffer }

/** What an event of a phone is sent with. */
export type SentInstall = {
  token: string
  key: string
  /** The registration before the event; null where the phone has a token. */
  registration: StreamElement | null
}

export type HistoryInstalls = {
  /** What derives the keys, as the tenant of the edge has it. */
  root: ReturnType<typeof toInstallRoot>
  /** @returns null for a phone that signs with the tenant's secret */
  before: (phone: Phone, sessionId: string, atMs: number) => SentInstall | null
}

/** SDKs register from this age on: about the newest third of the versions. */
const registeringAge = 0.6
/** A token is renewed in its last day. */
const renewBeforeMs = dayMs
/** A registration is received this long before its event. */
const leadMs = 2_000

/** Kinds whose bootloaders are unlocked. */
const unlocked = new Set(['lineageos', 'rooted-magisk', 'rooted-kernelsu', 'xposed'])
/** Kinds that use the leaked keybox. */
const leaked = new Set(['emulator-farm', 'cloud-phone', 'spoofed-identity'])
/** Kinds that are no app, or run where nothing attests. */
const unregistered = new Set(['scripted-sessions', 'account-farm', 'ios-simulator'])

type Options = { seed: number; tenantId: string }

export function createHistoryInstalls({ seed, tenantId }: Options): HistoryInstalls {
  const random = createRandom(seed, 'installs of the history')
  const toRoot = (name: string) => ({ key: makeSeededKey(random, 'P-384'), name })
  const roots = { android: toRoot('Simulated Android root'), apple: toRoot('Simulated Apple root') }
  const root = toInstallRoot(1, Buffer.from(random.hex(2 * installRootBytes), 'hex'))
  const factories = new Map<string, Factory>()
  const factoryOf = (name: string): Factory => {
    const factory = factories.get(name) ?? createFactory(roots.android, seed, name)
    factories.set(name, factory)
    return factory
  }
  type Held = { token: string; key: string; endMs: number; sessionId: string }
  const held = new Map<string, Held>()

  const before: HistoryInstalls['before'] = (phone, sessionId, atMs) => {
    const isLeaked = leaked.has(phone.kind.name)
    if (!registers(phone)) return null
    const known = held.get(phone.deviceId)
    const lasts = known !== undefined && known.endMs - atMs > renewBeforeMs
    const isSameImage = !isLeaked || known?.sessionId === sessionId
    if (known !== undefined && lasts && isSameImage) {
      return { token: known.token, key: known.key, registration: null }
    }
    const receivedAtMs = atMs - leadMs
    // A farm starts each session from another image, which names another model.
    const model = isLeaked ? `SM-${sessionId.slice(0, 6).toUpperCase()}` : phone.hardware.model
    const evidence = makeEvidence(phone, model, sessionId, receivedAtMs)
    const { id, platform } = phone.kind.platform === 'ios' ? iosApp : androidApp
    const request = {
      tenantId,
      deviceId: phone.deviceId,
      challenge: Buffer.alloc(40),
      challengeFault: null,
      app: { platform, id },
      deviceModel: model,
      evidence: { provider: 'none' } as const,
      receivedAtMs,
    }
    const { head, body, answer } = makeRegistration(request, evidence, root)
    const { install_token: token, install_key: key, expires_at } = JSON.parse(answer)
    held.set(phone.deviceId, { token, key, endMs: Date.parse(expires_at), sessionId })
    return { token, key, registration: { head, body } }
  }

  const makeEvidence = (
    phone: Phone,
    model: string,
    sessionId: string,
    atMs: number,
  ): VerifiedEvidence => {
    const { kind, hardware, deviceId } = phone
    const challenge = Buffer.from(`${deviceId} ${sessionId}`)
    const common = { seed, deviceId: `${deviceId} ${sessionId}`, nowMs: () => atMs }
    if (kind.platform === 'ios') {
      const appId = `${iosApp.team}.${iosApp.id}`
      const enclave = createAppleEnclave({ root: roots.apple, appId, ...common })
      const attestation = enclave.attest(challenge)
      const keyId = Buffer.from(enclave.keyId, 'base64')
      const judging = { challenge, apps, nowMs: atMs, roots: [toRootKey(roots.apple)] }
      return toVerifiedEvidence(checkAppAttest({ attestation, keyId, ...judging }))
    }
    // Phones without Google's keys.
    if (hardware.brand === 'HUAWEI' || hardware.brand === 'Amazon') return noEvidence
    const isLeaked = leaked.has(kind.name)
    const isProvisioned = !isLeaked && (hardware.apiLevel ?? 0) >= 33
    const from = isProvisioned ? 'rkp' : factoryOf(isLeaked ? 'leaked' : hardware.model)
    const level = kind.name === 'test-emulator' ? 'software' : levelOf(phone)
    const { chain } = createAndroidKeystore({
      ...common,
      root: roots.android,
      from,
      model,
      level,
      packageName: androidApp.id,
      bootloader: unlocked.has(kind.name) ? 'unlocked' : 'locked',
      signer: kind.name === 'repackaged' ? Buffer.alloc(32, 0xcd) : testSigner,
      patchLevel: toPatchLevel(atMs - hashToUnit(deviceId) * 300 * dayMs),
    }).attestKey(challenge)
    const judging = { challenge, apps, nowMs: atMs, roots: [toRootKey(roots.android)] }
    return toVerifiedEvidence(checkKeyAttestation({ chain, statusList: null, ...judging }))
  }
  return { root, before }
}

const apps: AttestedApp[] = [
  { ...androidApp, signers: [testSigner.toString('hex')] },
  { ...iosApp, allowsDevelopment: false },
]

const registers = ({ kind, sdk }: Phone): boolean =>
  sdk.name !== 'server' && sdk.age >= registeringAge && !unregistered.has(kind.name)

const levelOf = ({ hardware }: Phone) =>
  hardware.brand === 'Google' || hardware.model.startsWith('SM-S') ? 'strongbox' : 'hardware'

/** Year and month, such as 202610. */
function toPatchLevel(atMs: number): number {
  const at = new Date(atMs)
  return at.getUTCFullYear() * 100 + at.getUTCMonth() + 1
}
