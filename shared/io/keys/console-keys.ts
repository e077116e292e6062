/**
 * What the console does with MASTER_KEY: it seals and opens every secret, signs the directory, and
 * proves and checks the rest. The list of removals has MACs: only consoles write and read it. Which
 * form a console writes is a fact of the installation (see key-form.ts).
 */
import { createProver, deriveKey, type ProofPurpose, type Prover, type Verifier } from './proofs.ts'
import {
  createOpener,
  type Opener,
  type SecretOwner,
  sealUnder,
  secretKinds,
  toKindKey,
  toSealingHead,
  toSealingKeyId,
} from './sealed-secrets.ts'
import { createSigner } from './signatures.ts'

/**
 * The form of sealed texts and of the directory. `old`: everything is under MASTER_KEY, as in the
 * release before. `switching`: the new one is written and both are read. `new`: only signatures
 * count in the directory.
 */
export const keyForms = ['old', 'switching', 'new'] as const
export type KeyForm = (typeof keyForms)[number]

export type Sealer = Opener & {
  seal: (secret: string, owner: SecretOwner) => string
  /** Whether a sealed text is in the form, and under the key, that seals now. */
  isCurrent: (sealed: string) => boolean
  /** The heads of all texts that are: form and key id, such as `v2.abcdefgh`. */
  currentHeads: () => string[]
  /** The id of the first master key. */
  keyId: string
  /** The prover of a purpose; it follows the form. */
  proverOf: (purpose: ProofPurpose) => Prover
}

/** The keys of a console's configuration, the one that seals first. */
export function toMasterKeys(config: {
  MASTER_KEY: string
  MASTER_KEY_PREVIOUS?: string | undefined
}): [string, ...string[]] {
  const { MASTER_KEY: key, MASTER_KEY_PREVIOUS: previous } = config
  return previous === undefined ? [key] : [key, previous]
}

/**
 * @param masterKeys base64 keys of 32 bytes; the first seals, all of them unseal
 * @param readForm the form that is in force
 */
export function createSealer(
  masterKeys: readonly [string, ...string[]],
  readForm: () => KeyForm = () => 'new',
): Sealer {
  const [first] = masterKeys
  const opener = createOpener((kind) => ({
    v1: masterKeys,
    v2: masterKeys.map((key) => toKindKey(key, kind)),
  }))
  const kindKeys = new Map(secretKinds.map((kind) => [kind, toKindKey(first, kind)]))
  const oldHeads = [`v1.${toSealingKeyId(first)}`]
  const newHeads = [...kindKeys.values()].map((key) => `v2.${toSealingKeyId(key)}`)
  const currentHeads = () => (readForm() === 'old' ? oldHeads : newHeads)
  const signer = createSigner(masterKeys)
  const provers = new Map<ProofPurpose, Prover>()
  return {
    ...opener,
    keyId: toSealingKeyId(first),
    seal: (secret, owner) =>
      readForm() === 'old'
        ? sealUnder(first, 'v1', secret, owner)
        : sealUnder(kindKeys.get(owner.kind)!, 'v2', secret, owner),
    isCurrent: (sealed) => currentHeads().includes(toSealingHead(sealed) ?? ''),
    currentHeads,
    proverOf: (purpose) => {
      const prover = provers.get(purpose) ?? toProver(purpose, { masterKeys, signer, readForm })
      provers.set(purpose, prover)
      return prover
    },
  }
}

type ProverParts = {
  masterKeys: readonly [string, ...string[]]
  signer: Prover
  readForm: () => KeyForm
}

function toProver(purpose: ProofPurpose, { masterKeys, signer, readForm }: ProverParts): Prover {
  const derive = (toKey: (masterKey: string) => string): Prover => {
    const [first, ...others] = masterKeys
    return createProver([toKey(first), ...others.map(toKey)])
  }
  const mac = derive((key) => deriveKey(key, purpose))
  switch (purpose) {
    case 'directory entry':
      return inForce({ old: mac, fresh: signer, readForm, oldCounts: () => readForm() !== 'new' })
    case 'edge announcement':
    case 'edge report':
    case 'request log': {
      // An edge that still has MASTER_KEY speaks as the release before did.
      const fresh = derive((key) => deriveKey(deriveKey(key, 'edge'), purpose))
      return inForce({ old: mac, fresh, readForm, oldCounts: () => true })
    }
    default:
      return mac
  }
}

/** A prover that follows the form at each call. */
function inForce(options: {
  old: Prover
  fresh: Prover
  readForm: () => KeyForm
  oldCounts: () => boolean
}): Prover {
  const { old, fresh, readForm, oldCounts } = options
  const present = () => (readForm() === 'old' ? old : fresh)
  const isProven: Verifier['isProven'] = (proof, context, data) =>
    fresh.isProven(proof, context, data) || (oldCounts() && old.isProven(proof, context, data))
  return {
    get keyId() {
      return present().keyId
    },
    prove: (context, data) => present().prove(context, data),
    isProven,
  }
}
