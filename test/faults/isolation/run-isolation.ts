/**
 * The isolation drill itself: a lane for each of five tenants with the same ids, each calling as
 * its tenant and as the operator who works on it, until as many calls were made as asked for; then
 * an erasure in one tenant, and everything of everybody read once more and held to the model.
 */
import fc from 'fast-check'
import { createCaller } from '../../support/http/http-call.ts'
import { admin, read, readAlerts } from '../../support/http/tenant-client.ts'
import { adminSteps } from './admin-steps.ts'
import { apiSteps, type Drawn, type Step } from './api-steps.ts'
import { findForeign } from './compare-answers.ts'
import {
  type Belongings,
  type DeviceView,
  findDepartures,
  type IsolationWorld,
  toDevicePath,
} from './rig.ts'
import { createLane, type IsolationFindings, type Lane } from './tenant-client.ts'
import { sharedDevices } from './tenants.ts'

export type IsolationResult = IsolationFindings & {
  calls: number
  /** What the end found otherwise than the model has it. */
  departures: string[]
  /** Webhook requests, and those that had anything of another tenant than the one they went to. */
  webhooks: number
  foreignWebhooks: number
}

/** Of the REST API's steps; the admin API's weights add up to about 50. */
const apiWeight = 2.2

const steps = fc.oneof(
  ...[...apiSteps.map(([weight, step]) => [weight * apiWeight, step] as const), ...adminSteps].map(
    ([weight, step]) => ({ weight: Math.round(weight * 100), arbitrary: fc.constant(step) }),
  ),
)

const plan: fc.Arbitrary<{ step: Step; drawn: Drawn }> = fc.record({
  step: steps,
  drawn: fc.record({
    pick: fc.nat(100_000),
    other: fc.nat(1_000),
    limit: fc.nat(1_000),
    flags: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    instants: fc.tuple(fc.nat(1_000), fc.nat(1_000)),
  }),
})

/** Runs it. The same seed makes the same steps of each tenant in the same order. */
export async function drillIsolation(
  world: IsolationWorld,
  { calls, seed, onProgress }: { calls: number; seed: number; onProgress?: (done: number) => void },
): Promise<IsolationResult> {
  const findings: IsolationFindings = { routes: new Map(), examples: [] }
  const caller = createCaller()
  const done = () => [...findings.routes.values()].reduce((sum, one) => sum + one.calls, 0)
  try {
    await Promise.all(
      world.belongings.map(async (own, index) => {
        const lane = createLane(world, own, { caller, findings })
        await firstOfEach(lane, seed + index)
        // A step makes one call to eight: what is left over is not done.
        const numRuns = Math.ceil(calls / world.belongings.length)
        for (const { step, drawn } of fc.sample(plan, { numRuns, seed: seed + index })) {
          if (done() >= calls) return
          await step(lane, drawn)
          if (index === 0) onProgress?.(done())
        }
      }),
    )
  } finally {
    caller.close()
  }
  const departures = await checkEnd(world)
  return { ...findings, calls: done(), departures, ...checkWebhooks(world) }
}

/** Every step once, however short the run. */
async function firstOfEach(lane: Lane, seed: number): Promise<void> {
  const all = [...apiSteps, ...adminSteps].map(([, step]) => step)
  const drawn = fc.sample(plan, { numRuns: all.length, seed: seed ^ 0x5eed })
  for (const [at, step] of all.entries()) await step(lane, drawn[at]!.drawn)
}

/** Erases a device of the first tenant, which all have, then reads everything of all. */
async function checkEnd({ running, belongings }: IsolationWorld): Promise<string[]> {
  const { stack } = running
  const [first] = belongings
  const erased = sharedDevices[0]!
  const { tenant_id: slug, public_api_key: key } = first!.tenant
  await admin(stack, 'POST', `/tenants/${slug}/erasures`, { device_id: erased })
  const departures: string[] = []
  const gone = await read(stack, key, toDevicePath(erased))
  if (gone.status !== 404) departures.push(`${slug}: ${erased} is there after its erasure`)
  await admin(stack, 'POST', `/tenants/${slug}/suspend`)
  const suspended = await read(stack, key, '/v1/di/alerts')
  if (suspended.status !== 401) departures.push(`${slug}: reads while it is suspended`)
  for (const own of belongings.slice(1)) departures.push(...(await readAll(own)))
  return departures

  async function readAll({ tenant, alerts, devices }: Belongings): Promise<string[]> {
    const found = await readAlerts(stack, tenant.public_api_key)
    const now: Belongings = { tenant, alerts: found.alerts, devices: new Map(), deliveryIds: [] }
    for (const id of devices.keys()) {
      const { body } = await read<DeviceView>(stack, tenant.public_api_key, toDevicePath(id))
      now.devices.set(id, body)
    }
    const stated = (all: typeof alerts) => all.map((one) => `${one.alert_id} ${one.disposition}`)
    const same = stated(found.alerts).join() === stated(alerts).join()
    return [...findDepartures(now), ...(same ? [] : ['dispositions'])].map(
      (what) => `${tenant.tenant_id}: ${what}`,
    )
  }
}

/** Whether every webhook request had only what belongs to the tenant whose URL it went to. */
function checkWebhooks({ receiver, ownership }: IsolationWorld) {
  const foreign = receiver.requests.filter(({ path, headers, body }) => {
    const owner = path.split('/').at(-1) ?? ''
    const text = `${JSON.stringify(headers)} ${body.toString('utf8')}`
    return findForeign(text, { owner, ownership, asked: '' }).length > 0
  })
  return { webhooks: receiver.requests.length, foreignWebhooks: foreign.length }
}
