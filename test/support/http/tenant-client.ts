// A tenant's own client of a running stack, for end-to-end tests: creates a tenant, signs and posts
// telemetry, reads alerts and devices, rotates. It uses plain fetch, so that no code of the service
// is on both ends.

import { createHmac } from 'node:crypto'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import type { StackFacts } from '../process/stack.ts'

export type Tenant = {
  tenant_id: string
  public_api_key: string
  hmac_secret: string
  webhook_secret: string
}

export type ApiDevice = {
  device_id: string
  first_seen_at: string
  last_seen_at: string
  peak_rasp_score: number
  users_seen_on: string[]
  sessions: { session_id: string; rasp_action: string; started_at: string }[]
  sessions_total: number
}

/**
 * Calls the admin API of a stack.
 * @throws with the text of the response on anything but 2xx
 */
export function admin<T>(
  stack: StackFacts,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  return callAdmin<T>(stack.console, stack.admin_token, { method, path, body })
}

/** The same for any console. */
export async function callAdmin<T>(
  consoleUrl: string,
  token: string,
  { method, path, body }: { method: string; path: string; body?: unknown },
): Promise<T> {
  const response = await fetch(`${consoleUrl}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text) as T
}

/** Creates a sandbox tenant. */
export function createTenant(
  stack: StackFacts,
  tenantId: string,
  webhookUrl?: string,
): Promise<Tenant> {
  return admin(stack, 'POST', '/tenants', {
    tenant_id: tenantId,
    environment: 'sandbox',
    ...(webhookUrl === undefined ? {} : { webhook_url: webhookUrl }),
  })
}

export type Submission = {
  device?: string
  session?: string
  user?: string
  signals?: Record<string, Record<string, unknown>>
  extra?: Record<string, unknown>
}

/** The body of one submission, with empty categories by default. */
export function toBody(tenantId: string, submission: Submission = {}): string {
  const empty = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  return JSON.stringify({
    tenant_id: tenantId,
    device_id: submission.device ?? 'device-1',
    session_id: submission.session ?? 'session-1',
    ...(submission.user === undefined ? {} : { user_id: submission.user }),
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { ...empty, ...submission.signals },
    ...submission.extra,
  })
}

export type IngestAnswer = {
  status: number
  body: {
    status?: string
    rasp_score?: number
    rasp_action?: string
    event_id?: string
    code?: string
  }
}

/** Posts a body signed with a secret. */
export async function ingest(
  stack: StackFacts,
  secret: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<IngestAnswer> {
  const response = await fetch(`${stack.ingest}/v1/rasp/ingest`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      'x-service-signature': createHmac('sha256', secret).update(body).digest('base64'),
    },
    body,
  })
  return { status: response.status, body: (await response.json()) as IngestAnswer['body'] }
}

/** Reads a REST path with the tenant's key. */
export async function read<T>(
  stack: StackFacts,
  key: string,
  path: string,
): Promise<{ status: number; body: T }> {
  const response = await fetch(`${stack.api}${path}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  return { status: response.status, body: (await response.json()) as T }
}

/** All alerts of a tenant through the cursor, newest first, and the first page's total. */
export async function readAlerts(
  stack: StackFacts,
  key: string,
): Promise<{ alerts: Alert[]; total: number }> {
  const alerts: Alert[] = []
  let cursor: string | null = ''
  let total = 0
  while (cursor !== null) {
    const page: {
      status: number
      body: { data: Alert[]; total: number; next_cursor: string | null }
    } = await read(stack, key, `/v1/di/alerts?limit=500${cursor === '' ? '' : `&cursor=${cursor}`}`)
    if (page.status !== 200) throw new Error(`alerts: ${page.status} ${JSON.stringify(page.body)}`)
    alerts.push(...page.body.data)
    total = page.body.total
    cursor = page.body.next_cursor
  }
  return { alerts, total }
}
