// The sandbox tenant `demo`, created on the first start, so that a newcomer can sign a request at
// once. Its credentials are disclosed only when they are created. If a crash loses them, the next
// start rotates them.

import type { ConsoleCall } from './console-call.ts'
import { StartError } from './stack/settings.ts'
import type { DemoTenant } from './stack/state-files.ts'

const TENANT_ID = 'demo'
const NAME = 'Demo'

/**
 * Ensures that the tenant exists.
 * @returns its new credentials when they were created now, null when `known` is still valid
 */
export async function ensureDemoTenant(
  call: ConsoleCall,
  options: {
    known: DemoTenant | undefined
    /** False for an external database, whose existing tenant is not changed. */
    ownDatabase: boolean
  },
): Promise<DemoTenant | null> {
  if (options.known) {
    const shown = await call('GET', `/tenants/${TENANT_ID}`)
    if (shown.status !== 404) return null
  }
  const tenant = { tenant_id: TENANT_ID, name: NAME, environment: 'sandbox' }
  const created = await call('POST', '/tenants', tenant)
  if (created.status === 201) return credentials(created.body)
  if (created.status === 409) {
    if (!options.ownDatabase) return null
    const all = { hmac: true, webhook: true, api_key: true }
    const rotated = await call('POST', `/tenants/${TENANT_ID}/rotate`, all)
    if (rotated.status === 200) return credentials(rotated.body)
    throw new StartError(`the demo tenant's keys could not be rotated (HTTP ${rotated.status})`)
  }
  throw new StartError(`the demo tenant could not be created (HTTP ${created.status})`)
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
