/**
 * What the directory and the list of removals in NATS know that Postgres does not: Postgres was put
 * back to an earlier state. Nothing of it is taken over before an operator has seen and confirmed
 * exactly this.
 */
import { hash } from 'node:crypto'
import { unavailable } from '#shared/core/http/problem.ts'
import { policyKey, type TenantEntry, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { type Directory, openDirectory } from '#shared/io/tenants/directory/directory-entries.ts'
import { findAhead, isPolicy } from '#shared/io/tenants/directory/directory-faults.ts'
import { readRemovals } from '#shared/io/tenants/removal-list.ts'
import {
  findLostRemovals,
  type LostRemovals,
  listRemovals,
} from '#shared/io/tenants/removal-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'

/** A tenant's state as an operator compares it. */
export type TenantState = {
  epoch: number
  status: TenantEntry['status']
  environment: TenantEntry['environment']
  policy_version: number
  /** The last four characters of the HMAC secret; null without one, or when no key opens it. */
  hmac_last4: string | null
}

export type TenantToRecover = {
  tenant_id: string
  directory: TenantState
  /** Null for a tenant that Postgres does not have. */
  postgres: TenantState | null
}

export type Recovery = LostRemovals & {
  /** Of all that is listed: who confirms it names it. */
  digest: string
  tenants: TenantToRecover[]
  /** The entries of `tenants`. */
  entries: TenantEntry[]
}

export type RecoveryParts = { nats: Nats; sealer: Sealer; postgres: Postgres; wallMs: () => number }

/**
 * NATS is read before Postgres, so what is written meanwhile is never ahead.
 * @throws Problem unavailable when NATS does not answer, or has not every bucket
 */
export async function readRecovery(parts: RecoveryParts): Promise<Recovery> {
  const { sealer, postgres } = parts
  const nowMs = parts.wallMs()
  const { directory, held, listed } = await readHeld(parts).catch(rejectUnread)
  const present = await createTenantStore(postgres).listEntries()
  const ahead = await findAhead({ postgres }, directory, held, present)
  const known = new Map(present.map((entry) => [entry.tenant_id, entry]))
  const toState = (entry: TenantEntry): TenantState => ({
    epoch: entry.epoch,
    status: entry.status,
    environment: entry.environment,
    policy_version: entry.policy_version,
    hmac_last4: findLast4(sealer, entry),
  })
  const tenants = ahead.map(({ entry }) => {
    const old = known.get(entry.tenant_id)
    return {
      tenant_id: entry.tenant_id,
      directory: toState(entry),
      postgres: old === undefined ? null : toState(old),
    }
  })
  const removals = await listRemovals(postgres, nowMs)
  const lost = await findLostRemovals(postgres, { listed, present: removals, nowMs })
  const entries = ahead.map(({ entry }) => entry)
  return { ...lost, tenants, entries, digest: toDigest({ entries, tenants, lost }) }
}

async function readHeld({ nats, sealer }: RecoveryParts) {
  const directory = await openDirectory(nats, sealer)
  const held = await readEntries(nats, directory.bucket, tenantKey('*'))
  return { directory, held, listed: await readRemovals(nats, sealer.proverOf('removal')) }
}

/** For `catch` of what reads NATS. */
export function rejectUnread(error: unknown): never {
  throw unavailable('What NATS knows cannot be read: it does not answer.', error)
}

const toDigest = (all: object) => hash('sha256', JSON.stringify(all), 'hex').slice(0, 16)

/** @returns null when the entry has no secret, or no key opens it */
export function findLast4(sealer: Sealer, entry: TenantEntry): string | null {
  const { tenant_id: tenantId, hmac_secret_sealed: sealed } = entry
  if (sealed === null) return null
  try {
    return sealer.unseal(sealed, { tenantId, kind: 'hmac' }).slice(-4)
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error
    return null
  }
}

/** The document of an entry's policy; null when the directory does not have it. */
export async function findPolicyText(
  { bucket }: Directory,
  { policy_hash: policyHash }: TenantEntry,
): Promise<string | null> {
  const document = await bucket.get(policyKey(policyHash))
  return isPolicy(document ?? undefined, policyHash) ? document!.string() : null
}
