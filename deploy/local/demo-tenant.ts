// The sandbox tenant `demo`, created on the first start, so that a newcomer can sign a request at
// once. Its credentials are disclosed only when they are created. If a crash loses them, the next
// start rotates them.

import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from './stack/settings.ts'
import type { DemoTenant } from './stack/state-files.ts'

const TENANT_ID = 'demo'
const NAME = 'Demo'
const CALL_TIMEOUT_MS = 15_000
/** The console may be restarting; within this time a failed call is repeated. */
const PATIENCE_MS = 20_000
const PAUSE_MS = 250

/**
 * Ensures that the tenant exists.
 * @returns its new credentials when they were created now, null when `known` is still valid
 */
export async function ensureDemoTenant(options: {
  consoleUrl: string
  adminToken: string
  known: DemoTenant | undefined
  /** False for an external database, whose existing tenant is not changed. */
  ownDatabase: boolean
  signal: AbortSignal
}): Promise<DemoTenant | null> {
  const call = (method: string, path: string, body?: unknown) =>
    callConsole({ ...options, method, path, body })
  if (options.known) {
    const shown = await call('GET', `/admin/v1/tenants/${TENANT_ID}`)
    if (shown.status !== 404) return null
  }
  const tenant = { tenant_id: TENANT_ID, name: NAME, environment: 'sandbox' }
  const created = await call('POST', '/admin/v1/tenants', tenant)
  if (created.status === 201) return credentials(created.body)
  if (created.status === 409) {
    if (!options.ownDatabase) return null
    const all = { hmac: true, webhook: true, api_key: true }
    const rotated = await call('POST', `/admin/v1/tenants/${TENANT_ID}/rotate`, all)
    if (rotated.status === 200) return credentials(rotated.body)
    throw new StartError(`the demo tenant's keys could not be rotated (HTTP ${rotated.status})`)
  }
  throw new StartError(`the demo tenant could not be created (HTTP ${created.status})`)
}

/** One call, repeated while the console is unreachable or responds with a 5xx status. */
async function callConsole(options: {
  consoleUrl: string
  adminToken: string
  method: string
  path: string
  body: unknown
  signal: AbortSignal
}): Promise<Answer> {
  const deadline = performance.now() + PATIENCE_MS
  while (true) {
    const answer = await tryConsole(options).catch((error: unknown) => String(error))
    if (typeof answer !== 'string' && answer.status < 500) return answer
    options.signal.throwIfAborted()
    if (performance.now() > deadline) {
      const why = typeof answer === 'string' ? answer : `HTTP ${answer.status}`
      throw new StartError(`the console did not answer for the demo tenant: ${why}`)
    }
    await sleep(PAUSE_MS)
  }
}

type Answer = { status: number; body: unknown }

async function tryConsole(options: {
  consoleUrl: string
  adminToken: string
  method: string
  path: string
  body: unknown
}): Promise<Answer> {
  const response = await fetch(`${options.consoleUrl}${options.path}`, {
    method: options.method,
    headers: {
      authorization: `Bearer ${options.adminToken}`,
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

function credentials(body: unknown): DemoTenant {
  const given = body as Partial<DemoTenant>
  const { public_api_key, hmac_secret, webhook_secret } = given
  if (!public_api_key || !hmac_secret || !webhook_secret) {
    throw new StartError("the console did not disclose all of the demo tenant's credentials")
  }
  return { tenant_id: TENANT_ID, public_api_key, hmac_secret, webhook_secret }
}

const DEMO_BODY = JSON.stringify({
  tenant_id: TENANT_ID,
  device_id: 'demo-device-1',
  session_id: 'demo-session-1',
  sdk_meta: { sdk_version: '2.4.1', platform: 'android', batch_type: 'startup' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: {
    root: { su_binary: true, magisk_detected: true },
    emulator: {},
    debugger: {},
    tamper: {},
    ecosystem: {},
    network: {},
  },
})

/** Two shell commands: send a signed telemetry submission, and read the device history. */
export function demoCommands(
  demo: DemoTenant,
  urls: { ingest: string; api: string },
): { send: string; read: string } {
  const send = [
    `BODY='${DEMO_BODY}'`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac '${demo.hmac_secret}' -binary` +
      ' | base64)',
    `curl -sS -w '\\n' ${urls.ingest}/v1/rasp/ingest -H 'Content-Type: application/json'` +
      ' -H "X-Service-Signature: $SIGNATURE" --data-binary "$BODY"',
  ].join('; ')
  const read =
    `curl -sS -w '\\n' ${urls.api}/v1/di/devices/demo-device-1` +
    ` -H 'Authorization: Bearer ${demo.public_api_key}'`
  return { send, read }
}
