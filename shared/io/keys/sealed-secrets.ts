/**
 * Secrets at rest: AES-256-GCM with owner and kind as associated data, so a sealed secret copied to
 * another owner or kind cannot be opened. Each kind has a key of its own, derived from MASTER_KEY,
 * so that a process gets the key of what it opens. The key's short id stands in the sealed text, so
 * that two keys can be in use while one replaces the other.
 *
 * The form before sealed every kind under MASTER_KEY itself (`v1`); the console still reads it.
 */
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { deriveKey, type KeyPurpose } from './proofs.ts'

export type SecretKind = 'hmac' | 'webhook'
/**
 * A secret of a tenant, its install root, its new credentials in one text, the Play keys of one of
 * its apps, the key of its clients' addresses, the TOTP secret of an operator, the id that an
 * erasure is about, or the private half of a key that signs verdicts.
 */
export type SecretOwner =
  | { tenantId: string; kind: SecretKind | 'install_root' | 'play' | 'address' | 'rotated' }
  | { operatorId: string; kind: 'totp' }
  | { erasureId: string; kind: 'subject' }
  | { verdictKeyId: string; kind: 'verdict' }

export type Opener = {
  /** @throws UnsealError when the text was not sealed for this owner under a configured key */
  unseal: (sealed: string, owner: SecretOwner) => string
}

/** A sealed secret cannot be unsealed; the message names the reason and nothing of the secret. */
export class UnsealError extends Error {
  constructor(owner: SecretOwner, why: string) {
    super(`the ${owner.kind} secret of ${toOwnerName(owner)} cannot be unsealed: ${why}`)
    this.name = 'UnsealError'
  }
}

/** No tenant's slug has the form of another owner's id, and each kind has a key of its own. */
function toId(owner: SecretOwner): string {
  if (owner.kind === 'totp') return owner.operatorId
  if (owner.kind === 'verdict') return owner.verdictKeyId
  return owner.kind === 'subject' ? owner.erasureId : owner.tenantId
}

function toOwnerName(owner: SecretOwner): string {
  if (owner.kind === 'totp') return `operator ${toId(owner)}`
  if (owner.kind === 'verdict') return `key ${toId(owner)}`
  return `${owner.kind === 'subject' ? 'erasure' : 'tenant'} ${toId(owner)}`
}

/** The keys that a process has for one kind of secret: each form has its own. */
export type SealingKeys = Partial<Record<SealingVersion, readonly string[]>>
export type SealingVersion = 'v1' | 'v2'

const versionNumbers = { v1: 1, v2: 2 } as const

const associatedData = (version: SealingVersion, owner: SecretOwner) =>
  Buffer.from(
    JSON.stringify(['device-intelligence', versionNumbers[version], toId(owner), owner.kind]),
  )

/** The public short id of a sealing key. */
export function toSealingKeyId(key: string): string {
  const named = Buffer.concat([Buffer.from('key-id:'), Buffer.from(key, 'base64')])
  return hash('sha256', named, 'base64url').slice(0, 8)
}

/** The form and key of a sealed text, `v2.<key id>`; null when the text is of another form. */
export function toSealingHead(sealed: string): string | null {
  const [version = '', id, nonce, text] = sealed.split('.')
  const isSealed = version in versionNumbers && id !== undefined && nonce !== undefined
  return isSealed && text !== undefined ? `${version}.${id}` : null
}

/** The keys of the kinds that an edge opens: it derives them from EDGE_KEY. */
export const toHmacKey = (edgeKey: string) => deriveKey(edgeKey, 'hmac secret')
export const toInstallRootKey = (edgeKey: string) => deriveKey(edgeKey, 'install root')
export const toPlayKey = (edgeKey: string) => deriveKey(edgeKey, 'play keys')
export const toAddressSealingKey = (edgeKey: string) => deriveKey(edgeKey, 'address key')
export const toVerdictSealingKey = (edgeKey: string) => deriveKey(edgeKey, 'verdict key')

const purposes = {
  webhook: 'webhook secret',
  rotated: 'rotated credentials',
  totp: 'totp secret',
  subject: 'erasure subject',
} as const satisfies Record<
  Exclude<SecretOwner['kind'], 'hmac' | 'install_root' | 'play' | 'address' | 'verdict'>,
  KeyPurpose
>

export const secretKinds = [
  'hmac',
  'install_root',
  'play',
  'address',
  'webhook',
  'rotated',
  'totp',
  'subject',
  'verdict',
] as const

/** @param masterKey 32 bytes in base64 @returns the key of one kind, likewise */
export function toKindKey(masterKey: string, kind: SecretOwner['kind']): string {
  if (kind === 'hmac') return toHmacKey(deriveKey(masterKey, 'edge'))
  if (kind === 'install_root') return toInstallRootKey(deriveKey(masterKey, 'edge'))
  if (kind === 'play') return toPlayKey(deriveKey(masterKey, 'edge'))
  if (kind === 'address') return toAddressSealingKey(deriveKey(masterKey, 'edge'))
  if (kind === 'verdict') return toVerdictSealingKey(deriveKey(masterKey, 'edge'))
  return deriveKey(masterKey, purposes[kind])
}

/** @returns `<version>.<key id>.<nonce>.<ciphertext and tag>`, base64url parts */
export function sealUnder(
  key: string,
  version: SealingVersion,
  secret: string,
  owner: SecretOwner,
): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', Buffer.from(key, 'base64'), nonce)
  cipher.setAAD(associatedData(version, owner))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  const text = Buffer.concat([sealed, cipher.getAuthTag()]).toString('base64url')
  return `${version}.${toSealingKeyId(key)}.${nonce.toString('base64url')}.${text}`
}

/** @param keysOf the keys of a kind; none where a process may not open it */
export function createOpener(keysOf: (kind: SecretOwner['kind']) => SealingKeys): Opener {
  const held = new Map(secretKinds.map((kind) => [kind, toHeld(keysOf(kind))]))
  return {
    unseal: (sealed, owner) => {
      const keys = held.get(owner.kind)!
      if (keys.size === 0) throw new UnsealError(owner, 'this process has no key of its kind')
      const head = toSealingHead(sealed)
      if (head === null) throw new UnsealError(owner, 'it has an unknown form')
      const key = keys.get(head)
      if (key === undefined) throw new UnsealError(owner, 'it was sealed under another key')
      const [version, , nonce, text] = sealed.split('.') as [SealingVersion, string, string, string]
      const bytes = Buffer.from(text, 'base64url')
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
        decipher.setAAD(associatedData(version, owner))
        decipher.setAuthTag(bytes.subarray(-16))
        return decipher.update(bytes.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw new UnsealError(owner, 'it belongs to another owner or kind, or was changed')
      }
    },
  }
}

/** The keys by the head of what they open. */
function toHeld(keys: SealingKeys): Map<string, Buffer> {
  const entries = Object.entries(keys) as [SealingVersion, readonly string[]][]
  return new Map(
    entries.flatMap(([version, texts]) =>
      texts.map((text) => [`${version}.${toSealingKeyId(text)}`, Buffer.from(text, 'base64')]),
    ),
  )
}

/**
 * SQL: the form and key of a sealed text, as `Sealer.currentHeads` has them.
 * @param column with the sealed text
 */
export const toHeadSql = (column: string) =>
  `split_part(${column}, '.', 1) || '.' || split_part(${column}, '.', 2)`
