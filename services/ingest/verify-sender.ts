/**
 * Verifies who sent a body: a tenant, by its HMAC secret, or an install of a tenant, by the key
 * that its token derives. Nothing of body or token is parsed before the HMAC holds.
 *
 * A refusal costs the same, whatever is wrong: two HMACs over the body, and beside a token two more
 * over the token. It says nothing of the reason, which only a metric has. What an install signed
 * costs one HMAC over the token more than what its tenant signed.
 */
import { hash, type KeyObject } from 'node:crypto'
import {
  findTokenFault,
  type InstallFacts,
  type InstallRoot,
  openInstallToken,
  readInstallFacts,
  toDeviceHash,
  toTokenId,
} from '#shared/core/installs/install-token.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import type { EventHeader } from '#shared/core/telemetry/event-batch.ts'
import type { verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { type Refusal, refusals, refuseInstall } from './refusals.ts'

/** What a request brings to prove who sent it: the values of its headers. */
export type Credentials = {
  /** `X-Service-Signature` */
  signature: string | undefined
  /** `X-Service-Install` */
  install?: string | undefined
}

/** State of this edge that verification depends on. */
export type VerifyDeps = {
  findTenant: (tenantId: string) => Tenant | undefined
  /** Whether the copy of the credentials is proven current. */
  leaseValid: () => boolean
  /** Whether the copy has every tenant, and the key of each. */
  keysKnown: () => boolean
  /** Computes one HMAC over the body for any header. */
  verify: typeof verifySignature
  /** Replaces the key of tenants that have none, so that every 401 takes the same time. */
  decoyKey: KeyObject
  /** Replaces the install root where there is none of the token's epoch, likewise. */
  decoyRoot: InstallRoot
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/** What the edge knows of the sender of a body. */
export type Sender = {
  tenant: Tenant
  /** Server signals of category `attestation`, without those of the install's evidence. */
  attestation: CategorySignals
  /** The install whose key signed the body; null when the tenant's secret did. */
  install: { facts: InstallFacts; head: NonNullable<EventHeader['install']> } | null
  /** `toDeviceHash` of the device that the body must be of; null for any. */
  deviceHash: string | null
}

/**
 * Finds the sender of telemetry.
 * @param named the tenant that the body names; undefined when it was not looked for yet
 * @returns the sender whose signature is valid, or the refusal
 */
export function findSender(
  body: Buffer,
  { signature, install }: Credentials,
  deps: VerifyDeps,
  named: string | null | undefined,
): Sender | Refusal {
  const found = findNamed(body, signature, deps, named)
  if ('kind' in found) return found
  const { tenant } = found
  if (install !== undefined)
    return verifyInstall(body, { signature: signature!, install }, tenant, deps)
  const unverified = verifyTenant(body, signature!, tenant, deps)
  if (tenant === undefined || unverified !== null) return unverified ?? refusals.signatureInvalid
  if (tenant.sharedSecretOff) return refuseShared(body, signature!, deps)
  return { tenant, attestation: withoutToken, install: null, deviceHash: null }
}

/**
 * Finds the tenant that signed a registration, which its secret signs even where telemetry may not.
 * @returns the tenant whose signature is valid, or the refusal
 */
export function findRegistrar(
  body: Buffer,
  signature: string | undefined,
  deps: VerifyDeps,
): Tenant | Refusal {
  const found = findNamed(body, signature, deps, undefined)
  if ('kind' in found) return found
  const unverified = verifyTenant(body, signature!, found.tenant, deps)
  return unverified ?? found.tenant ?? refusals.signatureInvalid
}

/** Whether telemetry is of the device that its sender may speak for. */
export const isOwnDevice = ({ deviceHash }: Sender, deviceId: string): boolean =>
  deviceHash === null || toDeviceHash(deviceId) === deviceHash

const withoutToken: CategorySignals = { missing: true }
const withExpiredToken: CategorySignals = { stale: true }

function findNamed(
  body: Buffer,
  signature: string | undefined,
  deps: VerifyDeps,
  named: string | null | undefined,
): { tenant: Tenant | undefined } | Refusal {
  if (signature === undefined || signature === '') return refusals.signatureMissing
  // With stale credentials a wrong signature looks like one made with a new secret.
  if (!deps.leaseValid()) return refusals.lease
  const tenantId = named === undefined ? findTenant(body) : named
  return { tenant: tenantId === null ? undefined : deps.findTenant(tenantId) }
}

/**
 * Verifies the signature. A tenant that is unknown, suspended or between two secrets gets the same
 * refusal as a wrong signature. A valid signature costs one HMAC and every refused one costs two:
 * the second uses the secret that a rotation replaced, or the decoy. Only a valid signature gets an
 * answer that depends on its tenant: while the key of one tenant is not known, every signature that
 * is not valid gets a 503, whatever tenant it names.
 * @returns null when the signature is valid, else the refusal
 */
function verifyTenant(
  body: Buffer,
  signature: string,
  tenant: Tenant | undefined,
  deps: VerifyDeps,
): Refusal | null {
  const { decoyKey, verify } = deps
  const active = tenant?.status === 'active'
  const key = tenant?.key ?? null
  if (verify(body, signature, key ?? decoyKey) && active && key !== null) return null
  const retired = tenant?.retired ?? null
  const stale = verify(body, signature, retired?.key ?? decoyKey) && retired !== null
  // This edge is at fault, not the signature: a 401 would make the client give up.
  if (!deps.keysKnown()) return refusals.notSynced
  if (!stale || tenant === undefined) return refusals.signatureInvalid
  const { kind, reason, problem } = refusals.signatureInvalid
  return { kind, reason, problem, retired: { tenantId: tenant.tenantId, last4: retired.last4 } }
}

/** The tenant's own secret, which is off for telemetry, is refused as any wrong signature. */
function refuseShared(body: Buffer, signature: string, deps: VerifyDeps): Refusal {
  deps.verify(body, signature, deps.decoyKey)
  return deps.keysKnown() ? refusals.sharedSecretOff : refusals.notSynced
}

/**
 * Verifies a body that came with a token: signed with its install key, or, once the token has
 * expired, with the tenant's secret.
 */
function verifyInstall(
  body: Buffer,
  { signature, install }: { signature: string; install: string },
  tenant: Tenant | undefined,
  { verify, decoyKey, decoyRoot, keysKnown, wallMs }: VerifyDeps,
): Sender | Refusal {
  const opened = openInstallToken(install, tenant?.installRoots ?? [], decoyRoot)
  const isByInstall = verify(body, signature, opened.key)
  const active = tenant?.status === 'active' ? tenant : null
  if (isByInstall && opened.root !== undefined && active !== null) {
    const facts = readInstallFacts(opened)
    if (facts.t === active.tenantId && wallMs() < facts.exp)
      return toInstall(active, facts, install)
  }
  const fault = findTokenFault(opened)
  const secret = tenant?.sharedSecretOff ? null : (tenant?.key ?? null)
  const isByTenant = verify(body, signature, secret ?? decoyKey) && secret !== null
  if (!keysKnown()) return refusals.notSynced
  if (active === null) return refuseInstall('signature_invalid')
  if (fault !== null) return refuseInstall(fault)
  if (!isByInstall && !isByTenant) return refuseInstall('signature_invalid')
  const facts = readInstallFacts(opened)
  if (facts.t !== active.tenantId) return refuseInstall('install_tenant')
  if (isByInstall) return refuseInstall('install_expired')
  if (wallMs() < facts.exp) return refuseInstall('install_key')
  return { tenant: active, attestation: withExpiredToken, install: null, deviceHash: facts.d }
}

function toInstall(tenant: Tenant, facts: InstallFacts, token: string): Sender {
  const { d: deviceHash, k } = facts
  const attestedKey = k === null ? null : hash('sha256', Buffer.from(k, 'base64'), 'base64url')
  return {
    tenant,
    attestation: { install_key: true },
    install: { facts, head: { token_id: toTokenId(token), attested_key: attestedKey } },
    deviceHash,
  }
}
