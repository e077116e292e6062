/**
 * One edge's working copy of the tenant directory, filled entry by entry in revision order. Secrets
 * are unsealed when an entry arrives and policies compiled when a tenant uses them, each once, so
 * that finding a tenant costs a map look-up. A tenant that cannot be used stays visible as such,
 * with its reason: it is never served from an earlier entry.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { undecidedShare } from '#shared/core/base/limits/stream.ts'
import { type Bucket, fullBucket, type Rate } from '#shared/core/http/rate-limit.ts'
import { type InstallRoot, toInstallRoot } from '#shared/core/installs/install-token.ts'
import { addressKeyBytes, type ClientAddress } from '#shared/core/tenants/client-address.ts'
import {
  syncedEntrySchema,
  type TenantEntry,
  tenantEntrySchema,
} from '#shared/core/tenants/directory-entries.ts'
import type { IngestAnswer } from '#shared/core/tenants/ingest-answer.ts'
import type { VerdictSigner } from '#shared/core/verdicts/verdict-token.ts'
import type { Opener } from '#shared/io/keys/sealed-secrets.ts'
import { createVerdictKeyCopy, type VerdictKeyFault } from '#shared/io/keys/verdict-key-copy.ts'
import { type ActivePolicies, type ActivePolicy, createActivePolicies } from './active-policies.ts'
import { noApps, openApps, type TenantApps } from './tenant-apps.ts'
import { createDirectoryLists, type TenantLists } from './tenant-lists.ts'

/** Why a tenant cannot be served by this edge; a metric label. */
type TenantFault =
  | 'unproven_entry'
  | 'unreadable_entry'
  /** A newer entry was applied before: the bucket was put back to an earlier copy. */
  | 'older_epoch'
  | 'unsealable_secret'
  | 'policy_missing'
  /** Its telemetry stream is beyond TELEMETRY_STREAMS of this edge. */
  | 'stream_unknown'

type ListFault = 'unproven_lists' | 'unreadable_lists'
/** Its telemetry is served all the same: only its Play tokens cannot be opened. */
type AppFault = 'unsealable_play_keys'
/** Likewise: only nothing is measured of its clients' addresses. */
type AddressFault = 'unsealable_address_key'
type CopyFault =
  | TenantFault
  | ListFault
  | AppFault
  | AddressFault
  | VerdictKeyFault
  | 'unreadable_policy'

export type Tenant = {
  tenantId: string
  environment: TenantEntry['environment']
  status: TenantEntry['status']
  epoch: number
  /** Null while a rotation has the old secret off and the new one not yet on. */
  key: KeyObject | null
  /** The previous secret, which is refused: it identifies stale-secret requests. */
  retired: RetiredSecret | null
  /** The valid ones, the one that makes tokens first; empty where it has none. */
  installRoots: readonly InstallRoot[]
  /** Whether telemetry that is signed with its secret is refused. */
  sharedSecretOff: boolean
  policyVersion: number
  policyHash: string
  /** Null while its document is missing. */
  policy: ActivePolicy | null
  /** Null is unlimited. The bucket outlives changes of the entry that keep the rate. */
  limiter: Limiter | null
  /** The rate in bytes, likewise; null shares what the edge can take with the others. */
  byteLimiter: Limiter | null
  /** Share of the telemetry stream that it may have waiting undecided. */
  undecidedShare: number
  /** The number of its telemetry stream. */
  telemetryStream: number
  /** What a 200 tells its clients. */
  ingestAnswer: IngestAnswer
  /** Which address of a client counts. */
  clientAddress: ClientAddress
  /** Whether events keep the full address. */
  isAddressStored: boolean
  /** What addresses are hashed under; null where it has none yet, so that nothing is measured. */
  addressKey: KeyObject | null
  /** Its allow and deny lists. */
  lists: TenantLists
  /** Its apps, whose evidence counts. */
  apps: TenantApps
  fault: TenantFault | null
}

type Limiter = { rate: Rate; bucket: Bucket }

/** A secret that a rotation has replaced, with the four characters operators know it by. */
type RetiredSecret = { key: KeyObject; last4: string }

export type TenantCopy = {
  tenants: ReadonlyMap<string, Tenant>
  /** Whether every tenant is in the snapshot, by the count that the console wrote. */
  synced: () => boolean
  /** Whether the key of every tenant is known, or known to be off. */
  keysKnown: () => boolean
  /** Sets the count of tenants that makes the snapshot synced; undefined removes it. */
  setSynced: (entry: unknown) => void
  /** Applies a tenant's entry, unless it is older than a known one; undefined removes the tenant. */
  setTenant: (tenantId: string, entry: unknown) => void
  /**
   * Refuses a tenant whose entry no console wrote: the entry before it may have been replaced
   * before it arrived, so the earlier state may be out of date.
   */
  setUnproven: (tenantId: string) => void
  /** The key that signs verdicts; null while there is none that this edge can use. */
  verdictSigner: () => VerdictSigner | null
  /** Applies the entry with that key; undefined removes the key. */
  setVerdictKey: (entry: unknown) => void
  /** Applies a policy document; undefined removes it for tenants that use it later. */
  setPolicy: (hash: string, document: unknown) => void
  /** Applies a shard of a tenant's lists, or with null its list of connections; likewise. */
  setLists: (tenantId: string, shard: string | null, value: unknown) => void
  /** Refuses a tenant until the one of its lists that no console wrote is replaced. */
  setListsUnproven: (tenantId: string, shard: string | null) => void
  countPolicies: ActivePolicies['count']
  countListEntries: () => number
}

type TenantCopyOptions = {
  /** Of HMAC secrets, install roots, Play keys, address keys and the verdict key. */
  opener: Opener
  /** How many telemetry streams this edge writes to. */
  telemetryStreams: number
  nowMs: () => number
  /** Called for every entry that cannot be used, without its content. */
  onFault: (fault: CopyFault, about: string) => void
  /** The tenant in the previous snapshot, whose rate bucket and newest epoch are kept. */
  previous: (tenantId: string) => Tenant | undefined
}

/** An empty copy. */
export function createTenantCopy(options: TenantCopyOptions): TenantCopy {
  const tenants = new Map<string, Tenant>()
  const policies = createActivePolicies((hash) => options.onFault('unreadable_policy', hash))
  const lists = createDirectoryLists()
  const verdictKey = createVerdictKeyCopy(options.opener, options.onFault)
  let tenantsMin = Number.POSITIVE_INFINITY

  const setSynced = (value: unknown) => {
    const parsed = syncedEntrySchema.safeParse(value)
    tenantsMin = parsed.success ? parsed.data.tenants : Number.POSITIVE_INFINITY
  }

  const findEpoch = (tenantId: string) =>
    (tenants.get(tenantId) ?? options.previous(tenantId))?.epoch ?? 0
  /** Tenants whose key is not known. */
  const keyless = new Set<string>()
  const put = (tenantId: string, tenant: Tenant) => {
    tenants.set(tenantId, tenant)
    const { key, fault } = tenant
    const isKeyless = key === null && fault !== null && fault !== 'policy_missing'
    if (isKeyless || fault === 'unsealable_secret') keyless.add(tenantId)
    else keyless.delete(tenantId)
  }
  /** Refuses a tenant until a console writes an entry that is not older than the newest known. */
  const refuse = (tenantId: string, fault: TenantFault, known: Partial<Tenant> = {}) => {
    options.onFault(fault, tenantId)
    policies.release(tenantId)
    const epoch = findEpoch(tenantId)
    put(tenantId, { ...unusable(tenantId, fault, lists.of(tenantId, {})), ...known, epoch })
  }

  const setTenant = (tenantId: string, value: unknown) => {
    if (value === undefined) {
      tenants.delete(tenantId)
      keyless.delete(tenantId)
      policies.release(tenantId)
      return
    }
    const parsed = tenantEntrySchema.safeParse(value)
    if (!parsed.success || parsed.data.tenant_id !== tenantId) {
      refuse(tenantId, 'unreadable_entry')
      return
    }
    const entry = parsed.data
    if ((entry.telemetry_stream ?? 1) > options.telemetryStreams) {
      const { status } = entry
      const { key, installRoots, sharedSecretOff } = unsealSecrets(entry, options.opener)
      refuse(tenantId, 'stream_unknown', { key, installRoots, sharedSecretOff, status })
      return
    }
    if (entry.epoch < findEpoch(tenantId)) {
      refuse(tenantId, 'older_epoch')
      return
    }
    const policy = policies.use(tenantId, entry.policy_hash)
    const facts = { policy, lists: lists.of(tenantId, entry) }
    const tenant = toTenant(entry, facts, options)
    put(tenantId, tenant)
    // A policy that is still to come is no fault yet; one that stays away shows in the gauge.
    if (tenant.fault === 'unsealable_secret') options.onFault(tenant.fault, tenantId)
  }

  const setUnproven = (tenantId: string) => refuse(tenantId, 'unproven_entry')

  const setPolicy = (hash: string, document: unknown) => {
    const used = policies.setDocument(hash, document)
    for (const tenantId of used?.tenantIds ?? []) {
      const tenant = tenants.get(tenantId)
      if (tenant?.fault !== 'policy_missing' || tenant.policyHash !== hash) continue
      put(tenantId, { ...tenant, policy: used!.policy, fault: null })
    }
  }

  const synced = () => tenants.size >= tenantsMin
  const { count: countPolicies } = policies
  return {
    tenants,
    synced,
    keysKnown: () => keyless.size === 0,
    setSynced,
    setTenant,
    setUnproven,
    verdictSigner: verdictKey.signer,
    setVerdictKey: verdictKey.set,
    setPolicy,
    setLists: (tenantId, shard, value) => {
      if (!lists.set(tenantId, shard, value)) options.onFault('unreadable_lists', tenantId)
    },
    setListsUnproven: (tenantId, shard) => {
      options.onFault('unproven_lists', tenantId)
      lists.setUnproven(tenantId, shard)
    },
    countPolicies,
    countListEntries: lists.count,
  }
}

function toTenant(
  entry: TenantEntry,
  { policy, lists }: Pick<Tenant, 'policy' | 'lists'>,
  options: TenantCopyOptions,
): Tenant {
  const { sealedElsewhere, ...secrets } = unsealSecrets(entry, options.opener)
  const before = options.previous(entry.tenant_id)
  const nowMs = options.nowMs()
  return {
    tenantId: entry.tenant_id,
    environment: entry.environment,
    status: entry.status,
    epoch: entry.epoch,
    ...secrets,
    retired: unsealRetired(entry, options.opener),
    policyVersion: entry.policy_version,
    policyHash: entry.policy_hash,
    policy,
    limiter: toLimiter(entry.ingest_rate, before?.limiter, nowMs),
    byteLimiter: toLimiter(entry.ingest_bytes, before?.byteLimiter, nowMs),
    undecidedShare: entry.ingest_share ?? undecidedShare,
    telemetryStream: entry.telemetry_stream ?? 1,
    ingestAnswer: entry.ingest_answer ?? 'full',
    clientAddress: entry.client_address ?? 'connection',
    isAddressStored: entry.store_client_address === true,
    addressKey: unsealAddressKey(entry, options),
    lists,
    apps: openApps(entry, options.opener, () =>
      options.onFault('unsealable_play_keys', entry.tenant_id),
    ),
    fault: sealedElsewhere ? 'unsealable_secret' : policy === null ? 'policy_missing' : null,
  }
}

type Unsealed = Pick<Tenant, 'key' | 'installRoots' | 'sharedSecretOff'> & {
  /** Whether one of them was sealed under another key than this edge has. */
  sealedElsewhere: boolean
}

/** What verifies the signatures of a tenant and its installs. */
function unsealSecrets(entry: TenantEntry, opener: Opener): Unsealed {
  const { key, sealedElsewhere } = unsealKey(entry, opener)
  const roots = unsealRoots(entry, opener)
  return {
    key,
    installRoots: roots ?? [],
    sharedSecretOff: entry.shared_secret_off === true,
    sealedElsewhere: sealedElsewhere || roots === null,
  }
}

/** @returns null when one cannot be unsealed */
function unsealRoots(entry: TenantEntry, opener: Opener): InstallRoot[] | null {
  const owner = { tenantId: entry.tenant_id, kind: 'install_root' as const }
  try {
    return (entry.install_roots ?? []).map(({ epoch, sealed }) =>
      toInstallRoot(epoch, Buffer.from(opener.unseal(sealed, owner), 'base64')),
    )
  } catch {
    return null
  }
}

function unsealKey(
  entry: TenantEntry,
  opener: Opener,
): { key: KeyObject | null; sealedElsewhere: boolean } {
  if (entry.hmac_secret_sealed === null) return { key: null, sealedElsewhere: false }
  try {
    const owner = { tenantId: entry.tenant_id, kind: 'hmac' as const }
    const secret = opener.unseal(entry.hmac_secret_sealed, owner)
    return { key: createSecretKey(secret, 'utf8'), sealedElsewhere: false }
  } catch {
    return { key: null, sealedElsewhere: true }
  }
}

/** @returns null, after a report, for one that cannot be unsealed */
function unsealAddressKey(
  entry: TenantEntry,
  { opener, onFault }: Pick<TenantCopyOptions, 'opener' | 'onFault'>,
): KeyObject | null {
  const { tenant_id: tenantId, address_key_sealed: sealed } = entry
  if (sealed === undefined) return null
  try {
    const key = Buffer.from(opener.unseal(sealed, { tenantId, kind: 'address' }), 'base64')
    if (key.length === addressKeyBytes) return createSecretKey(key)
  } catch {
    // As one of another length.
  }
  onFault('unsealable_address_key', tenantId)
  return null
}

/** A retired secret that cannot be unsealed counts as a wrong one. */
function unsealRetired(entry: TenantEntry, opener: Opener): RetiredSecret | null {
  if (entry.hmac_secret_retired_sealed === undefined) return null
  try {
    const owner = { tenantId: entry.tenant_id, kind: 'hmac' as const }
    const secret = opener.unseal(entry.hmac_secret_retired_sealed, owner)
    return { key: createSecretKey(secret, 'utf8'), last4: secret.slice(-4) }
  } catch {
    return null
  }
}

/** @param before whose bucket goes on where the rate is the same */
function toLimiter(
  rate: Rate | null | undefined,
  before: Limiter | null | undefined,
  nowMs: number,
): Limiter | null {
  if (rate === null || rate === undefined) return null
  if (before?.rate.perSecond === rate.perSecond && before.rate.burst === rate.burst) return before
  return { rate, bucket: fullBucket(rate, nowMs) }
}

function unusable(tenantId: string, fault: TenantFault, lists: TenantLists): Tenant {
  return {
    tenantId,
    environment: 'live',
    status: 'active',
    epoch: 0,
    key: null,
    retired: null,
    installRoots: [],
    sharedSecretOff: false,
    policyVersion: 0,
    policyHash: '',
    policy: null,
    limiter: null,
    byteLimiter: null,
    undecidedShare,
    telemetryStream: 1,
    ingestAnswer: 'full',
    clientAddress: 'connection',
    isAddressStored: false,
    addressKey: null,
    lists,
    apps: noApps,
    fault,
  }
}
