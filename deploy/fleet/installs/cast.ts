/**
 * The phones of a run with installs: their keystores, and what the service must find out about
 * each. A pure function of the seed, the number of phones and the roots, but for the randomness
 * of signatures.
 */

import type {
  InstallAttestation,
  InstallEvidence,
} from '../../../shared/client/installs/install-types.ts'
import {
  createAndroidKeystore,
  createFactory,
  type Factory,
} from '../../../test/support/attestation/android-keystore.ts'
import {
  type AppleEnclave,
  createAppleEnclave,
} from '../../../test/support/attestation/apple-enclave.ts'
import type { TestRoot } from '../../../test/support/attestation/make-android-chain.ts'
import type { PlayAccount } from '../../../test/support/attestation/make-play-token.ts'
import { createPlayIntegrity } from '../../../test/support/attestation/play-integrity.ts'
import { makePopulation, type Phone } from '../phones/population.ts'
import { createRandom } from '../phones/random.ts'
import { type InstallKind, installKinds } from './kinds.ts'

/** The apps of the tenant, as they are registered at the console. */
export const androidApp = { platform: 'android', id: 'com.example.bank' } as const
export const iosApp = { platform: 'ios', id: 'com.example.bank', team: 'ABCDE12345' } as const

/** Roots of the stack's own, and the keys of Play; null where it knows none. */
export type TestKeys = { android: TestRoot; apple: TestRoot; play: PlayAccount }

export type InstallPhone = {
  kind: InstallKind
  phone: Phone
  /** Null for a phone that has no platform to attest it, or that never registers. */
  attest: ((challenge: Uint8Array) => Promise<InstallEvidence> | InstallEvidence) | null
  /** Evidence for one body, in base64 or as a token; null where it has none. */
  prove: ((body: Uint8Array) => Promise<string> | string) | null
  /** What a registration answers. */
  attestation: Omit<InstallAttestation, 'provider'>
}

type Casting = { seed: number; keys: TestKeys | null; nowMs: () => number }

/** Models that the leaked keybox is sold for: more than a factory makes with one certificate. */
const leakedModels = 32

/**
 * Makes the phones.
 * @param devices phones that register; two further ones for each speak with the tenant's secret
 */
export function makeCast(devices: number, casting: Casting): InstallPhone[] {
  const wanted = installKinds.flatMap((kind) => {
    const count = Math.max(kind.atLeast, Math.round((devices * kind.share) / 1_000))
    return Array.from({ length: count }, (_, place) => ({ kind, place }))
  })
  const phones = drawPhones(
    casting.seed,
    wanted.map(({ kind }) => kind),
  )
  const makers = createMakers(casting)
  return wanted.map(({ kind, place }, index) => {
    const phone = phones[index]!
    const made = casting.keys === null ? null : makers.make(kind, phone, place)
    const none = { verdict: 'none', reason: null, level: 'none' } as const
    return {
      kind,
      phone,
      attest: made?.attest ?? null,
      prove: made?.prove ?? null,
      attestation: made === null ? none : kind.attestation,
    }
  })
}

/** Stock phones of the fleet, so that only their installs tell them apart. */
function drawPhones(seed: number, kinds: readonly InstallKind[]): Phone[] {
  const drawn = { android: [] as Phone[], ios: [] as Phone[] }
  const isEnough = () =>
    (['android', 'ios'] as const).every((platform) => {
      return drawn[platform].length >= kinds.filter((kind) => kind.platform === platform).length
    })
  for (let round = 0; !isEnough(); round++) {
    for (const phone of makePopulation(seed + round, kinds.length * 2)) {
      const { name, platform } = phone.kind
      if (name.startsWith('stock-') && phone.users.length < 2) drawn[platform].push(phone)
    }
  }
  return kinds.map((kind, index) => ({ ...drawn[kind.platform].shift()!, index }))
}

type Made = Pick<InstallPhone, 'attest' | 'prove'>

function createMakers({ seed, keys, nowMs }: Casting) {
  const factories = new Map<string, Factory>()
  const factoryOf = (root: TestRoot, name: string): Factory => {
    const known = factories.get(name) ?? createFactory(root, seed, name)
    factories.set(name, known)
    return known
  }
  const enclaves = new Map<string, AppleEnclave>()
  const android = (kind: InstallKind, phone: Phone, place: number): Made => {
    const root = keys!.android
    const { model: own } = phone.hardware
    // A keybox is sold to owners of other phones, which name their own models.
    const model = kind.name === 'leaked-keybox' ? `SOLD-${place % leakedModels}` : own
    const isFactory = kind.issuer === 'factory' || kind.issuer === 'leaked'
    const name = kind.issuer === 'leaked' ? 'leaked' : own
    const keystore = createAndroidKeystore({
      root,
      from: isFactory ? factoryOf(root, name) : 'rkp',
      deviceId: phone.deviceId,
      seed,
      model,
      packageName: androidApp.id,
      nowMs,
      ...kind.keystore,
    })
    let key: ReturnType<typeof keystore.attestKey> | null = null
    return {
      attest: (challenge) => {
        key = keystore.attestKey(challenge)
        const chain = key.chain.map((certificate) => certificate.toString('base64'))
        return { provider: 'key_attestation', chain }
      },
      prove: (body) => key!.sign(body).toString('base64'),
    }
  }
  const ios = (kind: InstallKind, phone: Phone, place: number): Made => {
    // Two phones of a copied enclave have one key.
    const isCopied = kind.name === 'copied-enclave'
    const deviceId = isCopied ? `copied:${Math.floor(place / 2)}` : phone.deviceId
    const appId = `${iosApp.team}.${iosApp.id}`
    const known = enclaves.get(deviceId)
    const enclave = known ?? createAppleEnclave({ root: keys!.apple, appId, deviceId, seed, nowMs })
    enclaves.set(deviceId, enclave)
    return {
      attest: (challenge) => ({
        provider: 'app_attest',
        key_id: enclave.keyId,
        attestation: enclave.attest(challenge).toString('base64'),
      }),
      // Whoever replays assertions cannot raise the counter.
      prove: (body) =>
        enclave.assert(body, kind.name === 'frozen-counter' ? 1 : undefined).toString('base64'),
    }
  }
  const play = (): Made => {
    const { id: packageName } = androidApp
    const made = createPlayIntegrity({ account: keys!.play, packageName, nowMs })
    return {
      attest: async (challenge) => ({
        provider: 'play_integrity',
        token: await made.attest(challenge),
      }),
      prove: made.prove,
    }
  }
  const make = (kind: InstallKind, phone: Phone, place: number): Made | null => {
    if (kind.provider === 'none') return null
    if (kind.provider === 'play_integrity') return play()
    return kind.platform === 'ios' ? ios(kind, phone, place) : android(kind, phone, place)
  }
  return { make }
}

/** Device ids that no install has: an attacker with the tenant's secret invents them. */
export const makeUpDevices = (seed: number, count: number): string[] => {
  const random = createRandom(seed, 'extracted secret')
  return Array.from({ length: count }, () => `and-${random.hex(32)}`)
}
