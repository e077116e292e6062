/**
 * The tenant of a run: a new sandbox tenant, whose whole content can be checked, or a given tenant.
 * The secrets of a given tenant are read from files, and its webhook is restored at the end.
 */
import { readFileSync } from 'node:fs'
import { type FleetContext, FleetError } from './fleet-context.ts'
import { fleetPolicy } from './fleet-policy.ts'

export type FleetTenant = {
  tenantId: string
  hmacSecret: string
  /** Null when it is unknown; then nothing can be read back. */
  apiKey: string | null
  webhookSecret: string | null
  /** Whether it was created for this run and has no other data. */
  own: boolean
  /** Restores the webhook. */
  release(): Promise<void>
}

type TenantOptions = {
  tenant?: string | undefined
  hmacSecretFile?: string | undefined
  apiKeyFile?: string | undefined
  webhookSecretFile?: string | undefined
  /** Where the receiver listens, or null when there is none. */
  webhookUrl: string | null
  /** Characters that make the slug of a fresh tenant unique. */
  suffix: string
}

/** @throws FleetError when secrets are missing or the console refuses */
export async function openTenant(
  context: FleetContext,
  options: TenantOptions,
): Promise<FleetTenant> {
  return options.tenant === undefined
    ? createOwn(context, options)
    : openGiven(context, options, options.tenant)
}

type Created = {
  tenant_id: string
  public_api_key: string
  hmac_secret: string
  webhook_secret: string
}

async function createOwn(context: FleetContext, options: TenantOptions): Promise<FleetTenant> {
  const tenantId = `fleet-${options.suffix}`
  const created = (await context.adminFetch('POST', '/tenants', {
    tenant_id: tenantId,
    name: 'Simulated fleet',
    environment: 'sandbox',
    ...(options.webhookUrl === null ? {} : { webhook_url: options.webhookUrl }),
  })) as Created
  // Everything comes from one address of this machine; the bodies say what phones have.
  await context.adminFetch('PUT', `/tenants/${tenantId}/client-address`, {
    client_address: 'body',
  })
  await context.adminFetch('PUT', `/tenants/${tenantId}/policy`, fleetPolicy)
  return {
    tenantId,
    hmacSecret: created.hmac_secret,
    apiKey: created.public_api_key,
    webhookSecret: created.webhook_secret,
    own: true,
    release: async () => {
      if (options.webhookUrl !== null) await setWebhook(context, tenantId, null)
    },
  }
}

async function openGiven(
  context: FleetContext,
  options: TenantOptions,
  tenantId: string,
): Promise<FleetTenant> {
  const demo = context.findStack()?.demo
  const known = demo?.tenant_id === tenantId ? demo : undefined
  const hmacSecret = readSecret(options.hmacSecretFile) ?? known?.hmac_secret
  const webhookSecret = readSecret(options.webhookSecretFile) ?? known?.webhook_secret ?? null
  if (hmacSecret === undefined) {
    throw new FleetError(`--tenant ${tenantId} needs --hmac-secret-file`)
  }
  const tenant = {
    tenantId,
    hmacSecret,
    apiKey: readSecret(options.apiKeyFile) ?? known?.public_api_key ?? null,
    webhookSecret,
    own: false,
  }
  if (options.webhookUrl === null) return { ...tenant, release: async () => {} }
  if (webhookSecret === null) {
    throw new FleetError(`--tenant ${tenantId} with --receive needs --webhook-secret-file`)
  }
  const shown = (await context.adminFetch('GET', `/tenants/${encodeURIComponent(tenantId)}`)) as {
    webhook_url?: string | null
  }
  await setWebhook(context, tenantId, options.webhookUrl)
  return { ...tenant, release: () => setWebhook(context, tenantId, shown.webhook_url ?? null) }
}

async function setWebhook(context: FleetContext, tenantId: string, url: string | null) {
  const path = `/tenants/${encodeURIComponent(tenantId)}/webhook`
  if (url === null) await context.adminFetch('DELETE', path)
  else await context.adminFetch('PUT', path, { url })
}

function readSecret(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new FleetError(`${file} cannot be read`, { cause: error })
  }
}
