/**
 * Tenants with the same device, session and user ids, filled in the same minute. Every text
 * that a tenant can choose has its own mark, its verdicts follow its own plan, and a model of the
 * service has the expected results.
 */
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { strictPolicy } from '#shared/core/policies/presets/strict.ts'
import {
  admin,
  createTenant,
  ingest,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { createModelService, type ModelService } from '../../support/telemetry/model-service.ts'

export type IsolatedTenant = Tenant & {
  index: number
  /** In every text of this tenant and of no other. */
  mark: string
  model: ModelService
  deviceIds: string[]
  /** A device that no other tenant has. */
  onlyDevice: string
  eventIds: string[]
  policyVersions: number
  /** A named key with the scope alerts:write. */
  writer_key: string
}

/** Ids that all tenants use. */
export const sharedDevices = ['device-1', 'device-2', 'a/b +c', 'übung-😀', "o'hara", 'device-6']
const levels: Record<string, Record<string, unknown>>[] = [
  {},
  { root: { su_binary: true } },
  { root: { su_binary: true, magisk_detected: true }, debugger: { debugger_attached: true } },
]

/** Creates the tenants and sends their events, each tenant's in a fixed order. */
export async function fillTenants(
  running: TestStack,
  { seed, count, hookUrl }: { seed: number; count: number; hookUrl: string },
): Promise<IsolatedTenant[]> {
  const made = await Promise.all(
    Array.from({ length: count }, async (_, index): Promise<IsolatedTenant> => {
      const mark = `own${index}${(seed % 46_656).toString(36).padStart(3, '0')}q`
      const slug = `iso-${mark}`
      const tenant = await createTenant(running.stack, slug, `${hookUrl}/${slug}`)
      const own = { index, mark, onlyDevice: `only-${mark}`, policyVersions: 1 }
      const deviceIds = [...sharedDevices, own.onlyDevice]
      const { api_key: writer_key } = await admin<{ api_key: string }>(
        running.stack,
        'POST',
        `/tenants/${slug}/keys`,
        { name: `writer-${mark}`, scopes: ['alerts:write'] },
      )
      const model = createModelService(slug)
      return { ...tenant, ...own, deviceIds, eventIds: [], model, writer_key }
    }),
  )
  await Promise.all(made.map((tenant) => send(running, tenant)))
  return made
}

async function send({ stack }: TestStack, tenant: IsolatedTenant): Promise<void> {
  const { index, mark, model } = tenant
  let atMs = Date.now()
  for (const [place, device] of tenant.deviceIds.entries()) {
    // Different numbers of the same sessions, with different verdicts.
    for (let session = 0; session < 6 + ((index + place) % 4); session++) {
      const level = (session + place + index) % levels.length
      const body = toBody(tenant.tenant_id, {
        device,
        session: `session-${place}-${session}`,
        ...(session % 3 === 0 ? {} : { user: `user-${session % 3}` }),
        signals: { ...levels[level], tamper: { [`seen_by_${mark}`]: true } },
        extra: {
          ...(session % 2 === 0 ? { account_id: `account-${mark}` } : {}),
          sdk_meta: { sdk_version: `4.2.${index}-${mark}`, platform: 'android', batch_type: 'x' },
        },
      })
      const answer = await ingest(stack, tenant.hmac_secret, body)
      atMs += 1
      const expected = model.accept(Buffer.from(body), atMs)
      const { rasp_score: score } = expected.json as { rasp_score: number }
      if (answer.status !== 200 || answer.body.rasp_score !== score) {
        throw new Error(`${tenant.tenant_id}: ${JSON.stringify(answer)}, not ${score}`)
      }
      tenant.eventIds.push(answer.body.event_id!)
    }
  }
}

/** Adds policies, analysts and a rotation, with marks, after the verdicts. */
export async function furnish({ stack }: TestStack, tenant: IsolatedTenant): Promise<void> {
  const { mark, index } = tenant
  const at = `/tenants/${tenant.tenant_id}`
  const rest_rate = { per_second: 1_000_000, burst: 1_000_000 }
  await admin(stack, 'PUT', `${at}/rates`, { rest_rate })
  for (let version = 0; version <= index; version++) {
    await admin(stack, 'PUT', `${at}/policy`, toPolicy(mark, version))
    tenant.policyVersions++
  }
  const shadow = { ...strictPolicy, name: `shadow of ${mark}` }
  await admin(stack, 'PUT', `${at}/policy/shadow`, shadow)
  for (const name of ['ana', `only-${mark}`]) {
    await admin(stack, 'POST', `${at}/analysts`, { name })
  }
  await admin(stack, 'POST', `${at}/rotate`, { hmac: true })
  // A request with the old secret is refused, and counted by SDK version.
  const sdk_meta = { sdk_version: `4.1.0-${mark}`, platform: 'android', batch_type: 'x' }
  const body = toBody(tenant.tenant_id, { extra: { sdk_meta } })
  const { status } = await ingest(stack, tenant.hmac_secret, body)
  if (status !== 401) throw new Error(`${tenant.tenant_id}: the old secret got ${status}`)
}

/** The default policy under another name, with the same verdicts. */
export const toPolicy = (mark: string, version: number) => ({
  ...defaultPolicy,
  name: `policy ${version} of ${mark}`,
})
