/**
 * Operations on tenants except rotation: create, suspend, resume, set rates, set what clients are
 * answered, set the webhook. A change and its audit row are one transaction. A change for edges
 * returns once every live edge has applied it.
 */

import type { GuardedKind } from '#shared/core/approvals/four-eyes.ts'
import type { AuditedAction } from '#shared/core/audit/audited-actions.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { type Environment, toApiKeyPrefix } from '#shared/core/tenants/credentials.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Session } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { createCredentialStore } from '#shared/io/tenants/credential-store.ts'
import type { EdgesWaited } from '#shared/io/tenants/directory/tenant-directory.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { setRates, type TenantRates } from '#shared/io/tenants/tenant-rate-store.ts'
import { createTenantStore, type TenantSettings } from '#shared/io/tenants/tenant-store.ts'
import { chooseTelemetryStream } from '#shared/io/tenants/tenant-streams.ts'
import type { TenantStatus, TenantView } from '#shared/io/tenants/tenant-view.ts'
import {
  type Maker,
  makeAddressKey,
  makeApiKey,
  makeHmacSecret,
  makeInstallRoot,
  makeWebhookSecret,
} from './credentials.ts'
import {
  type DirectoryWriter,
  projectCurrentState,
  requireDirectory,
  requireRecovered,
  tenantNotFound,
} from './directory.ts'

export type ManageDeps = Maker & {
  postgres: Postgres
  /** Connections for changes that hold a tenant's lock while they wait for the edges. */
  leases: Leases
  directory: DirectoryWriter
  /** How many telemetry streams there are. */
  telemetryStreams: number
  log: Log
  /** Checks a webhook URL and the addresses of its host. Returns the URL to store. */
  checkWebhookUrl: (
    url: string,
    environment: Environment,
  ) => Promise<{ ok: true; url: string } | { ok: false; why: string }>
}

type CreateTenant = {
  tenantId: string
  name: string
  environment: Environment
  webhookUrl: string | null
  actor: string
}

/** A new tenant with its secrets in the clear: the only time they are shown. */
export type CreatedTenant = {
  tenant_id: string
  environment: Environment
  public_api_key: string
  hmac_secret: string
  webhook_secret: string
  webhook_url: string | null
}

/**
 * Creates a tenant. When it returns, every live edge accepts the tenant.
 * @throws Problem tenant_exists, webhook_url_refused, unavailable (then nothing was created)
 */
export async function createTenant(deps: ManageDeps, wanted: CreateTenant): Promise<CreatedTenant> {
  const { tenantId, environment } = wanted
  requireDirectory(deps.directory)
  const webhookUrl = await checkUrl(deps, wanted.webhookUrl, environment)
  const hmac = makeHmacSecret(deps, tenantId)
  const webhook = makeWebhookSecret(deps, tenantId)
  const apiKey = makeApiKey(deps, environment)
  await withTenantLease(deps.leases, tenantId, async (session) => {
    await requireRecovered(deps.directory, session, tenantId)
    await session.transaction(async (tx) => {
      const policy = { hash: toPolicyHash(defaultPolicy), text: JSON.stringify(defaultPolicy) }
      await createTenantStore(tx).insertTenant({
        tenantId,
        name: wanted.name,
        environment,
        webhookUrl,
        policy,
        createdBy: wanted.actor,
        telemetryStream: await chooseTelemetryStream(tx, deps.telemetryStreams),
      })
      await createCredentialStore(tx).insertCredentials(tenantId, {
        hmac: hmac.stored,
        webhook: webhook.stored,
        apiKey: apiKey.stored,
        installRoot: makeInstallRoot(deps, tenantId),
        addressKey: makeAddressKey(deps, tenantId),
      })
      const after = {
        name: wanted.name,
        environment,
        webhook_url: webhookUrl,
        public_api_key: { prefix: toApiKeyPrefix(environment), last4: apiKey.stored.last4 },
        hmac_secret: { last4: hmac.stored.last4 },
        webhook_secret: { last4: webhook.stored.last4 },
      }
      await insertAudit(tx, { actor: wanted.actor, tenantId, action: 'tenant.created', after })
    })
    await projectNewTenant(deps, session, tenantId)
  })
  return {
    tenant_id: tenantId,
    environment,
    public_api_key: apiKey.plain,
    hmac_secret: hmac.plain,
    webhook_secret: webhook.plain,
    webhook_url: webhookUrl,
  }
}

/** Projects a new tenant to the edges. If that fails, the tenant is removed again. */
async function projectNewTenant(
  deps: ManageDeps,
  session: Session,
  tenantId: string,
): Promise<void> {
  try {
    const revision = await projectCurrentState(deps.directory, session, tenantId)
    await deps.directory.awaitEdges(revision)
  } catch (error) {
    await session.transaction(async (tx) => {
      await createTenantStore(tx).removeTenant(tenantId)
      await insertAudit(tx, { actor: 'system', tenantId, action: 'tenant.creation_undone' })
    })
    throw unavailable('The edges could not be updated, so the tenant was not created.', error)
  }
}

/**
 * Suspends or resumes a tenant. Repeating it is harmless and waits for the edges again.
 * @throws Problem tenant_not_found; unavailable when the change is recorded but an edge may not
 *   have it yet
 */
export async function setTenantStatus(
  deps: ManageDeps,
  wanted: {
    tenantId: string
    status: TenantStatus
    actor: string
    approval?: Approval | undefined
  },
): Promise<{ tenant_id: string; status: TenantStatus }> {
  const { status, approval, ...of } = wanted
  const guarded = status === 'suspended' ? ({ kind: 'suspension', approval } as const) : undefined
  const action = status === 'suspended' ? 'tenant.suspended' : 'tenant.resumed'
  await changeSetting(deps, of, { name: 'status', value: status, action, guarded })
  return { tenant_id: of.tenantId, status }
}

/**
 * Sets a tenant's rates. Null is the product's default; undefined does not change a rate.
 * @throws Problem as `setTenantStatus`
 */
export async function setTenantRates(
  deps: ManageDeps,
  wanted: TenantRates & { tenantId: string; actor: string },
): Promise<TenantView> {
  const { tenantId, actor, ...rates } = wanted
  return withTenantLease(deps.leases, tenantId, async (session) => {
    const before = await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    const after = await session.transaction(async (tx) => {
      await setRates(tx, tenantId, rates)
      const after = await requireTenant(tx, tenantId)
      const pick = ({ ingest_rate, ingest_bytes, ingest_share, rest_rate }: TenantView) => ({
        ingest_rate,
        ingest_bytes,
        ingest_share,
        rest_rate,
      })
      await insertAudit(tx, {
        actor,
        tenantId,
        action: 'tenant.rates_set',
        before: pick(before),
        after: pick(after),
      })
      return after
    })
    await updateEdges(deps, session, tenantId)
    return after
  })
}

type SettingChange<Name extends keyof TenantSettings> = {
  name: Name
  value: TenantSettings[Name]
  action: AuditedAction
  /** Where it is an effect that may need two persons. */
  guarded?: { kind: GuardedKind; approval?: Approval | undefined } | undefined
}

/**
 * Changes a setting of a tenant, at every edge when it returns. Repeating it is harmless and waits
 * for the edges again.
 * @throws Problem as `setTenantStatus`
 */
export async function changeSetting<Name extends keyof TenantSettings>(
  deps: Pick<ManageDeps, 'leases' | 'directory'>,
  { tenantId, actor }: { tenantId: string; actor: string },
  { name, value, action, guarded }: SettingChange<Name>,
): Promise<void> {
  await withTenantLease(deps.leases, tenantId, async (session) => {
    const { [name]: before } = await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    await session.transaction(async (tx) => {
      if (!(await createTenantStore(tx).setSetting(tenantId, name, value))) return
      if (guarded !== undefined) await claimChange(tx, { tenantId, actor, ...guarded })
      const changed = { before: { [name]: before }, after: { [name]: value } }
      await insertAudit(tx, { actor, tenantId, action, ...changed })
    })
    await updateEdges(deps, session, tenantId)
  })
}

/**
 * Projects a committed change and waits until every edge has applied it.
 * @throws Problem unavailable when the change is recorded but an edge may not have it yet
 */
export async function updateEdges(
  deps: Pick<ManageDeps, 'directory'>,
  session: Session,
  tenantId: string,
): Promise<EdgesWaited> {
  try {
    const revision = await projectCurrentState(deps.directory, session, tenantId)
    return await deps.directory.awaitEdges(revision)
  } catch (error) {
    throw unavailable(
      'The change is recorded, but the edges cannot be reached: they follow as soon as NATS is ' +
        'back. Repeat the call to confirm.',
      error,
    )
  }
}

/**
 * Sets the webhook's URL and switches the webhook on. A null URL switches it off.
 * @throws Problem tenant_not_found, webhook_url_refused
 */
export async function setTenantWebhook(
  deps: ManageDeps,
  wanted: { tenantId: string; url: string | null; actor: string },
): Promise<{ tenant_id: string; webhook_url: string | null }> {
  const { tenantId, actor } = wanted
  const { environment } = await requireTenant(deps.postgres, tenantId)
  const url = await checkUrl(deps, wanted.url, environment)
  await deps.postgres.transaction(async (tx) => {
    const before = await requireTenant(tx, tenantId)
    await createTenantStore(tx).setWebhook(tenantId, url)
    await insertAudit(tx, {
      actor,
      tenantId,
      action: url === null ? 'webhook.switched_off' : 'webhook.set',
      before: { url: before.webhook_url, state: before.webhook_state },
      after: { url, state: url === null ? 'off' : 'on' },
    })
  })
  return { tenant_id: tenantId, webhook_url: url }
}

/** Finds a tenant. @throws Problem tenant_not_found */
export async function requireTenant(
  db: Pick<Postgres, 'query'>,
  tenantId: string,
): Promise<TenantView> {
  const tenant = await createTenantStore(db).findTenant(tenantId)
  if (tenant === null) throw tenantNotFound(tenantId)
  return tenant
}

async function checkUrl(
  deps: ManageDeps,
  url: string | null,
  environment: Environment,
): Promise<string | null> {
  if (url === null) return null
  const verdict = await deps.checkWebhookUrl(url, environment)
  if (verdict.ok) return verdict.url
  throw new Problem('webhook_url_refused', `The webhook URL cannot be used: ${verdict.why}.`)
}
