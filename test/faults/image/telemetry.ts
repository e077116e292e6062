/** What the containers do for tenants: pages, telemetry, alerts in the API and webhooks. */
import { createHmac } from 'node:crypto'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import type { MappedPorts } from '../../support/deploy/composed-processes.ts'
import {
  callAdmin,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { StackFacts } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import type { Tell } from './promises.ts'

type Deps = {
  ports: MappedPorts
  readSecret: (name: string) => string
  /** The number to send; every other one raises an alert. */
  events: number
  tell: Tell
}

const tenantId = 'imaged'
/** For a script of the pages; the bundle has some hundred KB. */
const scriptBytesLeast = 10_000

/** Signed events are answered, raise their alerts, and these reach the receiver and the API. */
export async function tellTelemetry(deps: Deps): Promise<void> {
  const { ports, readSecret, tell } = deps
  const at = (port: string) => `http://127.0.0.1:${ports.get(port)}`
  const stack = {
    ingest: at('8080'),
    api: at('8081'),
    console: at('8082'),
    admin_token: readSecret('admin_token'),
  } as StackFacts
  tell('the console serves its pages', await findPageFaults(stack.console))
  const receiver = await startReceiver()
  try {
    const tenant = await callAdmin<Tenant>(stack.console, stack.admin_token, {
      method: 'POST',
      path: '/tenants',
      body: { tenant_id: tenantId, environment: 'sandbox', webhook_url: receiver.url },
    })
    const alerting = await tellIntake(deps, stack, tenant)
    await tellAlerts(deps, stack, tenant, { receiver, alerting })
  } finally {
    await receiver.close()
  }
}

async function findPageFaults(consoleUrl: string): Promise<string[]> {
  const page = await fetch(`${consoleUrl}/`)
  const [, src] = /<script type="module"[^>]* src="([^"]+)"/.exec(await page.text()) ?? []
  if (page.status !== 200 || src === undefined) return [`status ${page.status}, script ${src}`]
  const script = await fetch(new URL(src, `${consoleUrl}/`))
  const bytes = (await script.arrayBuffer()).byteLength
  if (script.status === 200 && bytes > scriptBytesLeast) return []
  return [`the script ${src}: status ${script.status}, ${bytes} bytes`]
}

/** @returns the devices that must have an alert */
async function tellIntake(
  { events, tell }: Deps,
  stack: StackFacts,
  tenant: Tenant,
): Promise<string[]> {
  const devices = Array.from({ length: events }, (_, n) => `device-${n}`)
  const submit = (device: string, n: number) => {
    const signals = n % 2 === 0 ? { debugger: { frida_detected: true } } : {}
    const body = toBody(tenantId, { device, session: `session-${n}`, signals })
    // An edge may not know the tenant yet.
    return until('an answer', async () => {
      const answer = await ingest(stack, tenant.hmac_secret, body)
      return answer.status === 401 || answer.status === 503 ? null : answer
    })
  }
  const answers = await Promise.all(devices.map(submit))
  const refused = answers.filter(({ status }) => status !== 200)
  tell(
    `ingest answers ${events} signed events with 200`,
    refused.map(({ status, body }) => `${status} ${body.code}`),
  )
  const { status } = await ingest(stack, 'another secret', toBody(tenantId))
  tell('ingest refuses a wrong signature', status === 401 ? [] : [`status ${status}`])
  return devices.filter((_, n) => n % 2 === 0).sort()
}

async function tellAlerts(
  { tell }: Deps,
  stack: StackFacts,
  tenant: Tenant,
  { receiver, alerting }: { receiver: Receiver; alerting: string[] },
): Promise<void> {
  const enough = (list: readonly unknown[]) => list.length >= alerting.length
  const readDevices = async () => {
    const { alerts } = await readAlerts(stack, tenant.public_api_key)
    return alerts.map(({ entity }) => entity.device.device_id).sort()
  }
  // What is missing at the time limit is reported as missing.
  await until('all alerts', async () => enough(await readDevices())).catch(() => undefined)
  tell(
    `the API has the ${alerting.length} alerts of these events`,
    differ(await readDevices(), alerting),
  )
  await until('all webhooks', () => enough(receiver.requests)).catch(() => undefined)
  const received = receiver.requests.map(({ body, headers }) => {
    const digest = createHmac('sha256', tenant.webhook_secret).update(body).digest('base64')
    if (headers['x-service-signature'] !== digest) return 'a wrong signature'
    return (JSON.parse(String(body)) as Received).entity.device.device_id
  })
  tell('the receiver gets each, signed, once', differ(received.sort(), alerting))
}

type Received = { entity: { device: { device_id: string } } }

/** Both are sorted. */
const differ = (found: readonly string[], expected: readonly string[]): string[] =>
  found.join() === expected.join() ? [] : [`${found.length} of ${expected.length}: ${found}`]
