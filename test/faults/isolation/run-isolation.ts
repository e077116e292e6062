/**
 * Runs the drill: one client for each tenant, until the required number of calls; then
 * erases and suspends one tenant, and compares all data of the others again.
 */
import fc from 'fast-check'
import { createCaller } from '../../support/http/http-call.ts'
import { admin, read, readAlerts } from '../../support/http/tenant-client.ts'
import { adminSteps } from './admin-steps.ts'
import { apiSteps, type Drawn, type Step } from './api-steps.ts'
import { findForeign } from './compare-answers.ts'
import { eventSteps } from './event-steps.ts'
import {
  type DeviceView,
  findDifferences,
  type IsolationRig,
  type Possessions,
  toDevicePath,
} from './rig.ts'
import { createTenantClient, type IsolationFindings, type TenantClient } from './tenant-client.ts'
import { sharedDevices } from './tenants.ts'

export type IsolationResult = IsolationFindings & {
  calls: number
  /** Differences at the end. */
  differences: string[]
  /** Webhook requests, and those with another tenant's data. */
  webhooks: number
  foreignWebhooks: number
}

/** Factor of the REST API's weights; those of the admin API add up to about 50. */
const apiWeight = 2.2
const restSteps = [...apiSteps, ...eventSteps]

const steps = fc.oneof(
  ...[...restSteps.map(([weight, step]) => [weight * apiWeight, step] as const), ...adminSteps].map(
    ([weight, step]) => ({ weight: Math.round(weight * 100), arbitrary: fc.constant(step) }),
  ),
)

const plan: fc.Arbitrary<{ step: Step; drawn: Drawn }> = fc.record({
  step: steps,
  drawn: fc.record({
    pick: fc.nat(100_000),
    other: fc.nat(1_000),
    limit: fc.nat(1_000),
    flags: fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }),
    instants: fc.tuple(fc.nat(1_000), fc.nat(1_000)),
  }),
})

/** The same seed makes the same steps of each tenant in the same order. */
export async function drillIsolation(
  rig: IsolationRig,
  { calls, seed, onProgress }: { calls: number; seed: number; onProgress?: (done: number) => void },
): Promise<IsolationResult> {
  const findings: IsolationFindings = { routes: new Map(), examples: [] }
  const caller = createCaller()
  const done = () => [...findings.routes.values()].reduce((sum, one) => sum + one.calls, 0)
  try {
    await Promise.all(
      rig.possessions.map(async (own, index) => {
        const client = createTenantClient(rig, own, { caller, findings })
        await firstOfEach(client, seed + index)
        // A step makes one to eight calls, so fewer steps suffice.
        const numRuns = Math.ceil(calls / rig.possessions.length)
        for (const { step, drawn } of fc.sample(plan, { numRuns, seed: seed + index })) {
          if (done() >= calls) return
          await step(client, drawn)
          if (index === 0) onProgress?.(done())
        }
      }),
    )
  } finally {
    caller.close()
  }
  const differences = await checkEnd(rig)
  return { ...findings, calls: done(), differences, ...checkWebhooks(rig) }
}

/** Every step once, also in a short run. */
async function firstOfEach(client: TenantClient, seed: number): Promise<void> {
  const all = [...restSteps, ...adminSteps].map(([, step]) => step)
  const drawn = fc.sample(plan, { numRuns: all.length, seed: seed ^ 0x5eed })
  for (const [at, step] of all.entries()) await step(client, drawn[at]!.drawn)
}

/** Erases a shared device of the first tenant and suspends it, then reads all other tenants. */
async function checkEnd({ running, possessions }: IsolationRig): Promise<string[]> {
  const { stack } = running
  const [first] = possessions
  const erased = sharedDevices[0]!
  const { tenant_id: slug, public_api_key: key } = first!.tenant
  await admin(stack, 'POST', `/tenants/${slug}/erasures`, { device_id: erased })
  const differences: string[] = []
  const gone = await read(stack, key, toDevicePath(erased))
  if (gone.status !== 404) differences.push(`${slug}: ${erased} is there after its erasure`)
  await admin(stack, 'POST', `/tenants/${slug}/suspend`)
  const suspended = await read(stack, key, '/v1/di/alerts')
  if (suspended.status !== 401) differences.push(`${slug}: reads while it is suspended`)
  for (const own of possessions.slice(1)) differences.push(...(await readAll(own)))
  return differences

  async function readAll({ tenant, alerts, devices }: Possessions): Promise<string[]> {
    const found = await readAlerts(stack, tenant.public_api_key)
    const now: Possessions = { tenant, alerts: found.alerts, devices: new Map(), deliveryIds: [] }
    for (const id of devices.keys()) {
      const { body } = await read<DeviceView>(stack, tenant.public_api_key, toDevicePath(id))
      now.devices.set(id, body)
    }
    const stated = (all: typeof alerts) => all.map((one) => `${one.alert_id} ${one.disposition}`)
    const same = stated(found.alerts).join() === stated(alerts).join()
    return [...findDifferences(now), ...(same ? [] : ['dispositions'])].map(
      (what) => `${tenant.tenant_id}: ${what}`,
    )
  }
}

/** Whether every webhook request has only data of the tenant of its URL. */
function checkWebhooks({ receiver, ownership }: IsolationRig) {
  const foreign = receiver.requests.filter(({ path, headers, body }) => {
    const owner = path.split('/').at(-1) ?? ''
    const text = `${JSON.stringify(headers)} ${body.toString('utf8')}`
    return findForeign(text, { owner, ownership, request: '' }).length > 0
  })
  return { webhooks: receiver.requests.length, foreignWebhooks: foreign.length }
}
