/** `di tenants ...`: create, list, show and change tenants. */
import { webhookEvents } from '#shared/core/deliveries/webhook-events.ts'
import { type Answer, change, command, group, read } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { type Column, toColumns, toFields, toTable, toTime } from '../tables.ts'
import { apps } from './apps.ts'
import { installs } from './installs.ts'
import { rates } from './rates.ts'
import { retention } from './retention.ts'
import { secondFactorOfTenant } from './second-factor.ts'

const path = '/tenants/{tenant_id}'

type Tenant = Answer<typeof path>
type WebhookHealth = NonNullable<Tenant['webhook_health']>
type StaleSecretReport = Answer<`${typeof path}/stale-secret-requests`>
type StaleSecretRequests = Omit<StaleSecretReport, 'tenant_id'>

type CreateOptions = { name?: string; sandbox?: true; webhookUrl?: string }
type RotateOptions = { hmac?: boolean; webhook?: boolean; apiKey?: boolean }
type WebhookOptions = {
  url?: string
  events?: string
  off?: true
  pause?: true
  resume?: true
}

const columns: readonly Column<Tenant>[] = [
  ['TENANT', 'tenant_id'],
  ['ENVIRONMENT', 'environment'],
  ['STATUS', 'status'],
  ['KEY', ({ public_api_key: key }) => `...${key?.last4 ?? '-'}`],
  ['LAST USED', ({ public_api_key: key }) => toTime(key?.last_used_at ?? null)],
  ['WEBHOOK', 'webhook_state'],
  ['CREATED', 'created_at'],
]

export const tenants = group('tenants', 'create, list, show and change tenants', [
  change('create <slug>', 'create a tenant and show its credentials, once', ['post', '/tenants'], {
    options: [
      ['--name <name>', 'a name for people'],
      ['--sandbox', 'a tenant to try things out (default: live)'],
      ['--webhook-url <url>', 'where alerts are delivered'],
    ],
    body: ({ name, sandbox, webhookUrl }: CreateOptions, [slug]) => ({
      tenant_id: slug,
      environment: sandbox ? 'sandbox' : 'live',
      name,
      webhook_url: webhookUrl,
    }),
    text: (tenant) => `${toFields(tenant)}\n\nKeep these now: the secrets are never shown again.`,
  }),
  command('list', 'list all tenants', [], async (context) => {
    context.out(await listAll(context), ({ data }) =>
      data.length === 0 ? 'There are no tenants yet.' : toColumns(columns, data),
    )
  }),
  command('show <slug>', 'show one tenant, without secrets', [], async (context, [slug]) => {
    const tenant = (await context.adminFetch('GET', toTenantPath(slug!))) as Tenant
    const use = await findStaleSecretRequests(context, slug!)
    context.out({ ...tenant, stale_secret_requests: use }, toShownText)
  }),
  change(
    'rotate <slug>',
    'replace credentials; returns once the old ones work nowhere. Without an option the ' +
      'HMAC and the webhook secret are rotated',
    ['post', `${path}/rotate`],
    {
      options: [
        ['--hmac', 'the private HMAC secret'],
        ['--webhook', 'the webhook signing secret'],
        ['--api-key', 'the public API key'],
      ],
      body: ({ hmac = false, webhook = false, apiKey = false }: RotateOptions) => ({
        hmac,
        webhook,
        api_key: apiKey,
      }),
      text: toRotatedText,
    },
  ),
  read(
    'rotation <slug>',
    'how far the latest rotation is, and what each edge has confirmed',
    `${path}/rotation`,
    { text: toRotationText },
  ),
  command<WebhookOptions>(
    'webhook <slug>',
    'set the webhook URL or its events, or switch, pause or resume the webhook',
    [
      ['--url <url>', 'deliver alerts there'],
      ['--events <kinds>', `which events, with commas: ${webhookEvents.join(',')}`],
      ['--off', 'deliver nothing'],
      ['--pause', 'let deliveries wait'],
      ['--resume', 'deliver again, also after the webhook was switched off for failing'],
    ],
    async (context, [slug], options) => {
      const webhook = await changeWebhook(context, slug!, options)
      context.out(webhook, toWebhookSetText)
    },
  ),
  change(
    'suspend <slug>',
    'reject all of its requests; returns once every edge does',
    ['post', `${path}/suspend`],
    { text: toFields },
  ),
  change('resume <slug>', 'accept its requests again', ['post', `${path}/resume`], {
    text: toFields,
  }),
  apps,
  change(
    'ingest-answer <slug> <answer>',
    'set what a 200 of ingest tells the client: full, or interface for the score, the action and ' +
      'the event id alone',
    ['put', `${path}/ingest-answer`],
    { body: (_: object, [, answer]) => ({ ingest_answer: answer }), text: toFields },
  ),
  change(
    'client-address <slug> <address>',
    'set which address of a client counts: connection, or body for client_ip of the signed body',
    ['put', `${path}/client-address`],
    { body: (_: object, [, address]) => ({ client_address: address }), text: toFields },
  ),
  change(
    'store-client-address <slug> <on|off>',
    'set whether events keep the full address of their client',
    ['put', `${path}/store-client-address`],
    {
      body: (_: object, [, wanted]) => ({ store_client_address: toSwitch(wanted) }),
      text: toFields,
    },
  ),
  rates,
  retention,
  secondFactorOfTenant,
  ...installs,
])

type WebhookSet = Pick<Tenant, 'tenant_id' | 'webhook_url'> & {
  webhook_state?: string
  webhook_events?: string[]
}

async function changeWebhook(
  context: CliContext,
  slug: string,
  { url, events, off, pause, resume }: WebhookOptions,
): Promise<WebhookSet> {
  const of = `${toTenantPath(slug)}/webhook`
  if ([url, events, off, pause, resume].filter((one) => one !== undefined).length !== 1) {
    throw new CliError('Give one of --url URL, --events KINDS, --off, --pause and --resume.')
  }
  if (events !== undefined) {
    const body = { events: events.split(',').map((event) => event.trim()) }
    return (await context.adminFetch('PUT', `${of}/events`, body)) as WebhookSet
  }
  const answer =
    url !== undefined
      ? await context.adminFetch('PUT', of, { url })
      : off
        ? await context.adminFetch('DELETE', of)
        : await context.adminFetch('POST', `${of}/${pause ? 'pause' : 'resume'}`)
  return answer as WebhookSet
}

const toWebhookSetText = ({ webhook_events: events, ...webhook }: WebhookSet): string =>
  toFields({ ...webhook, webhook_events: events?.join(', ') ?? null })

/** Requests signed with the previous secret; null when the edges' reports cannot be read. */
async function findStaleSecretRequests(
  context: CliContext,
  slug: string,
): Promise<StaleSecretRequests | null> {
  const of = `${toTenantPath(slug)}/stale-secret-requests`
  try {
    const { tenant_id: _, ...use } = (await context.adminFetch('GET', of)) as StaleSecretReport
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
    const page = (await context.adminFetch('GET', `/tenants${query}`)) as Answer<'/tenants'>
    data.push(...page.data)
    if (page.next_cursor === null) return { data, total: data.length }
    cursor = page.next_cursor
  }
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
    shared_secret: tenant.shared_secret_off ? 'off: only installs send telemetry' : 'on',
    install_roots: tenant.install_roots
      .map(({ epoch, state, created_at }) => `${epoch} (${state}, ${toTime(created_at)})`)
      .join(', '),
    client_address: toAddressText(tenant),
    webhook_secret: webhook === null ? null : toWebhookSecretText(webhook),
    webhook: toWebhookText(tenant),
    webhook_url: tenant.webhook_url,
    webhook_events: tenant.webhook_events.join(', '),
    epoch: tenant.epoch,
  })
}

const toAddressText = (tenant: Tenant): string => {
  const source = tenant.client_address === 'body' ? 'client_ip of the body' : 'of the connection'
  return `${source}; ${tenant.store_client_address ? 'kept in full' : 'its network and a hash are kept'}`
}

function toSwitch(text: string | undefined): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new CliError('Say on or off.')
}

function toWebhookSecretText(secret: NonNullable<Tenant['webhook_secret']>): string {
  const { last4, created_at: createdAt } = secret
  return `...${last4}, ${toTime(createdAt)}`
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

function toRotatedText(answer: Answer<`${typeof path}/rotate`, 'post'>): string {
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

function toRotationText({ rotation }: Answer<`${typeof path}/rotation`>): string {
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
  const show = (oldOff: Edge['old_off']) =>
    oldOff === null ? '-' : `${oldOff.outcome} ${toTime(oldOff.at)}`
  const rows = rotation.edges.map((edge) => [edge.edge_id, show(edge.old_off), show(edge.new_on)])
  return `${fields}\n\n${toTable(['EDGE', 'REFUSES THE OLD', 'ACCEPTS THE NEW'], rows)}`
}
