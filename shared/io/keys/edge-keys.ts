/**
 * The keys of an edge: it opens HMAC secrets, install roots, Play keys, the keys of addresses and
 * the key that signs verdicts, makes challenges, proves its own words, and checks what a console
 * has signed. None of them signs an entry or opens another kind of secret. An edge that still gets
 * MASTER_KEY derives them, and reads the form of the release before as well.
 */
import { anyOf, createProver, deriveKey, type Prover, type Verifier } from './proofs.ts'
import {
  createOpener,
  type Opener,
  toAddressSealingKey,
  toHmacKey,
  toInstallRootKey,
  toPlayKey,
  toVerdictSealingKey,
} from './sealed-secrets.ts'
import { createVerifier, toDirectoryPublicKey } from './signatures.ts'

/** What an edge says itself. */
export type EdgePurpose = 'edge announcement' | 'edge report' | 'request log'

export type EdgeKeys = Opener & {
  /** Of consoles' entries. */
  entries: Verifier
  proverOf: (purpose: EdgePurpose) => Prover
  /** Of telemetry batches. */
  batches: Prover
  /** Of challenges for installs, 32 bytes each: the first one makes them, all of them check. */
  challenges: [Buffer, ...Buffer[]]
  /** The forms of directory entries that it reads: 1 under MASTER_KEY, 2 signed. */
  forms: number[]
}

/** 32 bytes each in base64, the present key first. */
export type EdgeKeyTexts = {
  directory: [string, ...string[]]
  edge: [string, ...string[]]
  telemetry: [string, ...string[]]
  /** Where the process has them: deprecated. */
  master: string[]
  /** Whether its own keys come from MASTER_KEY, so that it speaks as the release before. */
  speaksOld: boolean
}

export function createEdgeKeys(keys: EdgeKeyTexts): EdgeKeys {
  const { master, speaksOld } = keys
  const underMaster = (purpose: Parameters<typeof deriveKey>[1]): Prover[] =>
    isSome(master) ? [createProver(mapSome(master, (key) => deriveKey(key, purpose)))] : []
  const opener = createOpener((kind) => {
    if (kind === 'hmac') return { v1: master, v2: keys.edge.map(toHmacKey) }
    if (kind === 'install_root') return { v1: master, v2: keys.edge.map(toInstallRootKey) }
    if (kind === 'play') return { v1: master, v2: keys.edge.map(toPlayKey) }
    if (kind === 'address') return { v1: master, v2: keys.edge.map(toAddressSealingKey) }
    return kind === 'verdict' ? { v1: master, v2: keys.edge.map(toVerdictSealingKey) } : {}
  })
  const toChallengeKey = (key: string) => Buffer.from(deriveKey(key, 'install challenge'), 'base64')
  return {
    ...opener,
    entries: anyOf(createVerifier(keys.directory), ...underMaster('directory entry')),
    proverOf: (purpose) => {
      const own = createProver(mapSome(keys.edge, (key) => deriveKey(key, purpose)))
      const [old] = underMaster(purpose)
      if (old === undefined) return own
      const speaker = speaksOld ? old : own
      return { prove: speaker.prove, ...anyOf(speaker, own, old) }
    },
    batches: createProver(keys.telemetry),
    challenges: mapSome(keys.edge, toChallengeKey),
    forms: master.length > 0 ? [1, 2] : [2],
  }
}

/** All keys of an edge that has MASTER_KEY alone. */
export function toEdgeKeyTexts(masterKeys: readonly [string, ...string[]]): EdgeKeyTexts {
  return {
    directory: mapSome(masterKeys, toDirectoryPublicKey),
    edge: mapSome(masterKeys, (key) => deriveKey(key, 'edge')),
    telemetry: mapSome(masterKeys, (key) => deriveKey(key, 'telemetry batch')),
    master: [],
    speaksOld: false,
  }
}

const isSome = (texts: readonly string[]): texts is readonly [string, ...string[]] =>
  texts.length > 0

function mapSome<T>(
  [first, ...others]: readonly [string, ...string[]],
  change: (text: string) => T,
): [T, ...T[]] {
  return [change(first), ...others.map(change)]
}
