/** Creates credentials: the plain text for one response, and the form that is stored. */

import { installRootBytes } from '#shared/core/installs/install-token.ts'
import { addressKeyBytes } from '#shared/core/tenants/client-address.ts'
import type { StoredKey } from '#shared/core/tenants/credentials.ts'
import {
  credentialBytes,
  type Environment,
  hashApiKey,
  toApiKey,
  toApiKeyPrefix,
  toHmacSecret,
  toLast4,
  toWebhookSecret,
} from '#shared/core/tenants/credentials.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { SealedSecret } from '#shared/io/tenants/credential-store.ts'

export type Maker = {
  sealer: Sealer
  /** Cryptographically random bytes. */
  randomBytes: (count: number) => Buffer
}

export type NewCredential<Stored> = { plain: string; stored: Stored }

export function makeHmacSecret(maker: Maker, tenantId: string): NewCredential<SealedSecret> {
  const plain = toHmacSecret(maker.randomBytes(credentialBytes))
  const sealed = maker.sealer.seal(plain, { tenantId, kind: 'hmac' })
  return { plain, stored: { sealed, last4: toLast4(plain) } }
}

export function makeWebhookSecret(maker: Maker, tenantId: string): NewCredential<SealedSecret> {
  const plain = toWebhookSecret(maker.randomBytes(credentialBytes))
  const sealed = maker.sealer.seal(plain, { tenantId, kind: 'webhook' })
  return { plain, stored: { sealed, last4: toLast4(plain) } }
}

export function makeApiKey(maker: Maker, environment: Environment): NewCredential<StoredKey> {
  const plain = toApiKey(environment, maker.randomBytes(credentialBytes))
  const prefix = toApiKeyPrefix(environment)
  return { plain, stored: { hash: hashApiKey(plain), prefix, last4: toLast4(plain) } }
}

/** Makes an install root, which nobody is shown. @returns it, sealed */
export function makeInstallRoot(maker: Maker, tenantId: string): string {
  const root = maker.randomBytes(installRootBytes).toString('base64')
  return maker.sealer.seal(root, { tenantId, kind: 'install_root' })
}

/** Makes the key that a tenant's addresses are hashed under. @returns it, sealed */
export function makeAddressKey(maker: Maker, tenantId: string): string {
  const key = maker.randomBytes(addressKeyBytes).toString('base64')
  return maker.sealer.seal(key, { tenantId, kind: 'address' })
}
