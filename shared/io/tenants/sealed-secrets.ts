/**
 * Secrets at rest: AES-256-GCM under MASTER_KEY with owner and kind as associated data, so a
 * sealed secret copied to another owner or kind cannot be opened. The key's own short id stands in
 * the sealed text, so that two keys can be in use while one replaces the other.
 */
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import {
  createProver,
  deriveKey,
  type ProofPurpose,
  type Prover,
} from '#shared/io/tenants/directory/proofs.ts'

export type SecretKind = 'hmac' | 'webhook'
/**
 * A secret of a tenant, its new credentials in one text, the TOTP secret of an operator, or the id
 * that an erasure is about.
 */
export type SecretOwner =
  | { tenantId: string; kind: SecretKind | 'rotated' }
  | { operatorId: string; kind: 'totp' }
  | { erasureId: string; kind: 'subject' }

export type Sealer = {
  /** @returns `v1.<key id>.<nonce>.<ciphertext and tag>`, base64url parts */
  seal: (secret: string, owner: SecretOwner) => string
  /** @throws UnsealError when the text was not sealed for this owner under a configured key */
  unseal: (sealed: string, owner: SecretOwner) => string
  /** The id of the key that seals. */
  keyId: string
  /** Creates the prover of a purpose, with keys derived from the master keys. */
  proverOf: (purpose: ProofPurpose) => Prover
}

/** A sealed secret cannot be unsealed; the message names the reason and nothing of the secret. */
export class UnsealError extends Error {
  constructor(owner: SecretOwner, why: string) {
    super(`the ${owner.kind} secret of ${toOwnerName(owner)} cannot be unsealed: ${why}`)
    this.name = 'UnsealError'
  }
}

/** No tenant's slug has the form of an operator's or an erasure's id. */
function toId(owner: SecretOwner): string {
  if (owner.kind === 'totp') return owner.operatorId
  return owner.kind === 'subject' ? owner.erasureId : owner.tenantId
}

function toOwnerName(owner: SecretOwner): string {
  if (owner.kind === 'totp') return `operator ${toId(owner)}`
  return `${owner.kind === 'subject' ? 'erasure' : 'tenant'} ${toId(owner)}`
}

const associatedData = (owner: SecretOwner) =>
  Buffer.from(JSON.stringify(['device-intelligence', 1, toId(owner), owner.kind]))

/** The public short id of a master key. */
function toKeyId(masterKey: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from('key-id:'), masterKey]), 'base64url').slice(0, 8)
}

/** The id of the key that a sealed text names, or null when the text is of another form. */
export function toSealingKeyId(sealed: string): string | null {
  const [version, id, , text] = sealed.split('.')
  return version === 'v1' && id !== undefined && text !== undefined ? id : null
}

/** The keys of a process's configuration, the one that seals first. */
export function toMasterKeys(config: {
  MASTER_KEY: string
  MASTER_KEY_PREVIOUS?: string | undefined
}): [string, ...string[]] {
  const { MASTER_KEY: key, MASTER_KEY_PREVIOUS: previous } = config
  return previous === undefined ? [key] : [key, previous]
}

/**
 * @param masterKeys base64 keys of 32 bytes; the first seals, all of them unseal
 */
export function createSealer(masterKeys: readonly [string, ...string[]]): Sealer {
  const keys = new Map(
    masterKeys.map((text) => {
      const key = Buffer.from(text, 'base64')
      return [toKeyId(key), key] as const
    }),
  )
  const keyId = toKeyId(Buffer.from(masterKeys[0], 'base64'))
  const sealingKey = keys.get(keyId)!
  return {
    keyId,
    proverOf: (purpose) => {
      const [first, ...others] = masterKeys
      const derive = (key: string) => deriveKey(key, purpose)
      return createProver([derive(first), ...others.map(derive)])
    },
    seal: (secret, owner) => {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce)
      cipher.setAAD(associatedData(owner))
      const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      const text = Buffer.concat([sealed, cipher.getAuthTag()])
      return `v1.${keyId}.${nonce.toString('base64url')}.${text.toString('base64url')}`
    },
    unseal: (sealed, owner) => {
      const [version, id, nonce, text] = sealed.split('.')
      if (version !== 'v1' || id === undefined || nonce === undefined || text === undefined) {
        throw new UnsealError(owner, 'it has an unknown form')
      }
      const key = keys.get(id)
      if (key === undefined) throw new UnsealError(owner, 'it was sealed under another MASTER_KEY')
      const bytes = Buffer.from(text, 'base64url')
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
        decipher.setAAD(associatedData(owner))
        decipher.setAuthTag(bytes.subarray(-16))
        return decipher.update(bytes.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw new UnsealError(owner, 'it belongs to another owner or kind, or was changed')
      }
    },
  }
}
