/** `di tenants ...`: create, list, show and change tenants. */
import type { Command } from 'commander'
import type { WebhookHealth } from '#shared/io/tenants/tenant-store.ts'
import type { CreatedTenant } from '../tenants/manage-tenants.ts'
import type { RotationResult } from '../tenants/rotation.ts'
import type { LatestRotation } from '../tenants/rotation-routes.ts'
import type { StaleSecretReport } from '../tenants/stale-secret-routes.ts'
import { type CliContext, CliError, toTenantPath } from './context.ts'
import { toFields, toTable, toTime } from './tables.ts'

/** A tenant in the admin API. */
type Tenant = {
  tenant_id: string
  name: string
  environment: string
  status: string
  epoch: number
  created_at: string
  webhook_url: string | null
  webhook_state: string
  webhook_off_reason: string | null
  webhook_changed_at: string | null
  webhook_health: WebhookHealth | null
  policy_version: number
  policy_hash: string
  public_api_key: { prefix: string; last4: string; last_used_at: string | null } | null
  hmac_secret: { last4: string; created_at: string; state: string } | null
  webhook_secret: { last4: string; created_at: string } | null
}

type StaleSecretRequests = Omit<StaleSecretReport, 'tenant_id'>

type CreateOptions = { name?: string; sandbox?: true; webhookUrl?: string }
type RotateOptions = { hmac?: true; webhook?: true; apiKey?: true }
type TenantPage = { data: Tenant[]; total: number; next_cursor: string | null }

/** Adds the group `tenants`. */
export function registerTenants(program: Command, context: CliContext): void {
  const tenants = program.command('tenants').description('create, list, show and change tenants')
  addCreate(tenants, context)
  addReads(tenants, context)
  addRotate(tenants, context)
  addRotation(tenants, context)
  addWebhook(tenants, context)
  for (const [verb, description] of [
    ['suspend', 'reject all of its requests; returns once every edge does'],
    ['resume', 'accept its requests again'],
  ] as const) {
    tenants
      .command(`${verb} <slug>`)
      .description(description)
      .option('--json', 'print one JSON document')
      .action(async (slug: string) => {
        const answer = await context.adminFetch('POST', `${toTenantPath(slug)}/${verb}`)
        context.out(answer as Pick<Tenant, 'tenant_id' | 'status'>, (tenant) => toFields(tenant))
      })
  }
}

function addCreate(tenants: Command, context: CliContext): void {
  tenants
    .command('create <slug>')
    .description('create a tenant and show its credentials, once')
    .option('--name <name>', 'a name for people')
    .option('--sandbox', 'a tenant to try things out (default: live)')
    .option('--webhook-url <url>', 'where alerts are delivered')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: CreateOptions) => {
      const created = await context.adminFetch('POST', '/tenants', {
        tenant_id: slug,
        environment: options.sandbox ? 'sandbox' : 'live',
        ...(options.name === undefined ? {} : { name: options.name }),
        ...(options.webhookUrl === undefined ? {} : { webhook_url: options.webhookUrl }),
      })
      context.out(
        created as CreatedTenant,
        (tenant) => `${toFields(tenant)}\n\nKeep these now: the secrets are never shown again.`,
      )
    })
}

function addReads(tenants: Command, context: CliContext): void {
  tenants
    .command('list')
    .description('list all tenants')
    .option('--json', 'print one JSON document')
    .action(async () => {
      const all = await listAll(context)
      context.out(all, ({ data }) => toTenantTable(data))
    })
  tenants
    .command('show <slug>')
    .description('show one tenant, without secrets')
    .option('--json', 'print one JSON document')
    .action(async (slug: string) => {
      const tenant = (await context.adminFetch('GET', toTenantPath(slug))) as Tenant
      const use = await findStaleSecretRequests(context, slug)
      context.out({ ...tenant, stale_secret_requests: use }, toShownText)
    })
}

/** Requests signed with the previous secret; null when the edges' reports cannot be read. */
async function findStaleSecretRequests(
  context: CliContext,
  slug: string,
): Promise<StaleSecretRequests | null> {
  const path = `${toTenantPath(slug)}/stale-secret-requests`
  try {
    const { tenant_id: _, ...use } = (await context.adminFetch('GET', path)) as StaleSecretReport
    return use
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}

async function listAll(context: CliContext): Promise<{ data: Tenant[]; total: number }> {
  const data: Tenant[] = []
  for (let cursor = ''; ; ) {
    const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`
    const page = (await context.adminFetch('GET', `/tenants${query}`)) as TenantPage
    data.push(...page.data)
    if (page.next_cursor === null) return { data, total: data.length }
    cursor = page.next_cursor
  }
}

function toTenantTable(tenants: Tenant[]): string {
  if (tenants.length === 0) return 'There are no tenants yet.'
  return toTable(
    ['TENANT', 'ENVIRONMENT', 'STATUS', 'KEY', 'LAST USED', 'WEBHOOK', 'CREATED'],
    tenants.map((tenant) => [
      tenant.tenant_id,
      tenant.environment,
      tenant.status,
      `...${tenant.public_api_key?.last4 ?? '-'}`,
      toTime(tenant.public_api_key?.last_used_at ?? null),
      tenant.webhook_state,
      toTime(tenant.created_at),
    ]),
  )
}

function toShownText(
  tenant: Tenant & { stale_secret_requests: StaleSecretRequests | null },
): string {
  const { stale_secret_requests: use } = tenant
  const text = toTenantText(tenant)
  if (use === null) return `${text}\n\nStale-secret requests cannot be read now.`
  if (use.retired_secret === null || use.requests === 0) return text
  const rows = use.data.map((row) => [
    row.sdk_version,
    String(row.requests),
    toTime(row.last_seen_at),
  ])
  return (
    `${text}\n\nRefused since ${toTime(use.retired_secret.retired_at)} for being signed with the ` +
    `retired secret ...${use.retired_secret.last4}:\n` +
    toTable(['SDK VERSION', 'REQUESTS', 'LAST SEEN'], rows)
  )
}

function toTenantText(tenant: Tenant): string {
  const { public_api_key: key, hmac_secret: hmac, webhook_secret: webhook } = tenant
  return toFields({
    tenant_id: tenant.tenant_id,
    name: tenant.name || null,
    environment: tenant.environment,
    status: tenant.status,
    created: toTime(tenant.created_at),
    policy: `version ${tenant.policy_version} (${tenant.policy_hash.slice(0, 8)})`,
    public_api_key:
      key === null ? null : `${key.prefix}...${key.last4}, last used ${toTime(key.last_used_at)}`,
    hmac_secret:
      hmac === null ? null : `...${hmac.last4}, ${hmac.state} since ${toTime(hmac.created_at)}`,
    webhook_secret: webhook === null ? null : `...${webhook.last4}, ${toTime(webhook.created_at)}`,
    webhook: toWebhookText(tenant),
    webhook_url: tenant.webhook_url,
    epoch: tenant.epoch,
  })
}

const offReasons: Record<string, string> = {
  operator: 'by an operator',
  gone: 'gone: the receiver answered 410',
  failing: 'failing: no attempt succeeded for five days',
}

/** The state of the webhook, and its reason. */
function toWebhookText(tenant: Tenant): string {
  const { webhook_state: state, webhook_off_reason: reason, webhook_health: health } = tenant
  const changed = toTime(tenant.webhook_changed_at)
  if (state === 'off') {
    if (reason === null) return 'off'
    const since = health === null ? '' : ` since ${toTime(health.failing_since)}`
    return `off since ${changed} (${offReasons[reason] ?? reason}${since})`
  }
  const words = state === 'paused' ? `paused since ${changed}: deliveries wait` : state
  return health === null ? words : `${words}, ${toHealthText(health)}`
}

function toHealthText(health: WebhookHealth): string {
  const { failed_attempts: attempts, last_failure: last, held_until: heldUntil } = health
  const many = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
  const failing = `failing since ${toTime(health.failing_since)} (${many}, last: ${last ?? '-'})`
  if (heldUntil === null) return failing
  return `${failing}; deliveries are held, next probe ${toTime(heldUntil)}`
}

function addRotate(tenants: Command, context: CliContext): void {
  tenants
    .command('rotate <slug>')
    .description(
      'replace credentials; returns once the old ones work nowhere. Without an option the ' +
        'HMAC and the webhook secret are rotated',
    )
    .option('--hmac', 'the private HMAC secret')
    .option('--webhook', 'the webhook signing secret')
    .option('--api-key', 'the public API key')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: RotateOptions) => {
      const answer = await context.adminFetch('POST', `${toTenantPath(slug)}/rotate`, {
        hmac: options.hmac === true,
        webhook: options.webhook === true,
        api_key: options.apiKey === true,
      })
      context.out(answer as RotationResult, toRotatedText)
    })
}

function toRotatedText(answer: RotationResult): string {
  const { duration_ms: ms, confirmed_edges: confirmed, lease_expired_edges: silent } = answer
  const secrets = toFields({
    tenant_id: answer.tenant_id,
    public_api_key: answer.public_api_key,
    hmac_secret: answer.hmac_secret,
    webhook_secret: answer.webhook_secret,
  })
  const refusing =
    silent.length === 0
      ? ''
      : `; ${silent.length} did not answer and reject requests until they have it`
  return (
    `${secrets}\n\nDone in ${ms} ms, ${confirmed.length} edges confirmed${refusing}. ` +
    'The old credentials are dead. Keep these now: they are never shown again.'
  )
}

function addRotation(tenants: Command, context: CliContext): void {
  tenants
    .command('rotation <slug>')
    .description('how far the latest rotation is, and what each edge has confirmed')
    .option('--json', 'print one JSON document')
    .action(async (slug: string) => {
      const latest = await context.adminFetch('GET', `${toTenantPath(slug)}/rotation`)
      context.out(latest as LatestRotation, toRotationText)
    })
}

function toRotationText({ rotation }: LatestRotation): string {
  if (rotation === null) return 'The credentials were never rotated.'
  const fields = toFields({
    rotation_id: rotation.rotation_id,
    started: `${toTime(rotation.started_at)} by ${rotation.started_by}`,
    state: rotation.state,
    step: rotation.step,
    duration_ms: rotation.duration_ms,
    failure: rotation.failure ?? undefined,
  })
  if (rotation.edges.length === 0) return fields
  type Edge = (typeof rotation.edges)[number]
  const show = (of: Edge['old_off']) => (of === null ? '-' : `${of.outcome} ${toTime(of.at)}`)
  const rows = rotation.edges.map((edge) => [edge.edge_id, show(edge.old_off), show(edge.new_on)])
  return `${fields}\n\n${toTable(['EDGE', 'REFUSES THE OLD', 'ACCEPTS THE NEW'], rows)}`
}

type WebhookOptions = { url?: string; off?: true; pause?: true; resume?: true }
type WebhookSet = Pick<Tenant, 'tenant_id' | 'webhook_url'> & { webhook_state?: string }

function addWebhook(tenants: Command, context: CliContext): void {
  tenants
    .command('webhook <slug>')
    .description('set the webhook URL, or switch, pause or resume the webhook')
    .option('--url <url>', 'deliver alerts there')
    .option('--off', 'deliver nothing')
    .option('--pause', 'let deliveries wait')
    .option('--resume', 'deliver again, also after the webhook was switched off for failing')
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: WebhookOptions) => {
      const path = `${toTenantPath(slug)}/webhook`
      const { url, off, pause, resume } = options
      if ([url, off, pause, resume].filter((one) => one !== undefined).length !== 1) {
        throw new CliError('Give one of --url URL, --off, --pause and --resume.')
      }
      const answer =
        url !== undefined
          ? await context.adminFetch('PUT', path, { url })
          : off
            ? await context.adminFetch('DELETE', path)
            : await context.adminFetch('POST', `${path}/${pause ? 'pause' : 'resume'}`)
      context.out(answer as WebhookSet, (tenant) => toFields(tenant))
    })
}
