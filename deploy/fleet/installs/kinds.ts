/** The kinds of installs in a run: their evidence, and what the service must say of them. */

import type { InstallAttestation } from '../../../shared/client/installs/install-types.ts'
import type { AndroidKeystoreOptions } from '../../../test/support/attestation/android-keystore.ts'

export type InstallKind = {
  name: string
  /** In a thousand registering phones. */
  share: number
  /** Phones of it in any run, however small. */
  atLeast: number
  platform: 'android' | 'ios'
  provider: 'key_attestation' | 'app_attest' | 'play_integrity' | 'none'
  /** Who certified the keystore of an Android phone. */
  issuer?: 'factory' | 'rkp' | 'leaked'
  keystore?: Partial<AndroidKeystoreOptions>
  attestation: Omit<InstallAttestation, 'provider'>
  /** Server signals of category `attestation` that its last event must have. */
  has: readonly string[]
  /** Those that it must not have. */
  lacks: readonly string[]
  /** The flag of the last event that only the order of events can tell; none of them otherwise. */
  orderFlag?: OrderFlag
}

/** What only the order of the stream tells of an install. */
export const orderFlags = ['ATTESTATION_KEY_SHARED', 'COUNTER_REUSED', 'REPLAYED'] as const
export type OrderFlag = (typeof orderFlags)[number]

const verified = (level: InstallAttestation['level']) =>
  ({ verdict: 'verified', reason: null, level }) as const
const rejected = (reason: string, level: InstallAttestation['level']) =>
  ({ verdict: 'rejected', reason, level }) as const

const genuine = ['install_key', 'verified', 'hardware_backed']
const suspicious = ['rejected', 'missing', 'stale', 'app_unknown']
const unverified = ['verified', 'missing', 'stale']

export const installKinds: readonly InstallKind[] = [
  {
    name: 'genuine-factory',
    share: 300,
    atLeast: 3,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'factory',
    attestation: verified('hardware'),
    has: genuine,
    lacks: suspicious,
  },
  {
    name: 'genuine-provisioned',
    share: 200,
    atLeast: 2,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'rkp',
    keystore: { level: 'strongbox' },
    attestation: verified('strongbox'),
    has: genuine,
    lacks: suspicious,
  },
  {
    name: 'genuine-ios',
    share: 250,
    atLeast: 3,
    platform: 'ios',
    provider: 'app_attest',
    attestation: verified('hardware'),
    has: genuine,
    lacks: suspicious,
  },
  {
    name: 'genuine-play',
    share: 40,
    atLeast: 1,
    platform: 'android',
    provider: 'play_integrity',
    attestation: verified('hardware'),
    has: ['install_key', 'verified'],
    lacks: suspicious,
  },
  {
    name: 'without-platform',
    share: 40,
    atLeast: 1,
    platform: 'android',
    provider: 'none',
    attestation: { verdict: 'none', reason: null, level: 'none' },
    has: ['install_key'],
    lacks: [...unverified, 'rejected', 'hardware_backed'],
  },
  {
    name: 'unlocked',
    share: 40,
    atLeast: 2,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'factory',
    keystore: { bootloader: 'unlocked' },
    attestation: rejected('bootloader_unlocked', 'hardware'),
    has: ['install_key', 'rejected', 'bootloader_unlocked'],
    lacks: unverified,
  },
  {
    name: 'emulator',
    share: 20,
    atLeast: 1,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'factory',
    keystore: { level: 'software' },
    attestation: rejected('software_key', 'software'),
    has: ['install_key', 'rejected'],
    lacks: [...unverified, 'hardware_backed'],
  },
  {
    name: 'repackaged',
    share: 20,
    atLeast: 1,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'factory',
    keystore: { signer: Buffer.alloc(32, 0xcd) },
    attestation: rejected('app_signer_unknown', 'hardware'),
    has: ['install_key', 'rejected', 'app_unknown'],
    lacks: unverified,
  },
  {
    // The keybox of one factory, on phones of more models than a factory makes with it.
    name: 'leaked-keybox',
    share: 80,
    atLeast: 32,
    platform: 'android',
    provider: 'key_attestation',
    issuer: 'leaked',
    attestation: verified('hardware'),
    has: genuine,
    lacks: suspicious,
    orderFlag: 'ATTESTATION_KEY_SHARED',
  },
  {
    // One attested key that two devices speak with.
    name: 'copied-enclave',
    share: 20,
    atLeast: 2,
    platform: 'ios',
    provider: 'app_attest',
    attestation: verified('hardware'),
    has: genuine,
    lacks: suspicious,
    orderFlag: 'ATTESTATION_KEY_SHARED',
  },
  {
    // Assertions whose counter does not rise.
    name: 'frozen-counter',
    share: 10,
    atLeast: 1,
    platform: 'ios',
    provider: 'app_attest',
    attestation: verified('hardware'),
    has: genuine,
    lacks: suspicious,
    orderFlag: 'COUNTER_REUSED',
  },
]
