/**
 * `npm run faults -- neighbours [--events 500] [--rate 100] [--rounds 3]`: one tenant sends events
 * that are as alike as events can be, in four forms, one after another; another tenant sends single
 * risky events meanwhile. From the 200 to the alert they must take at most 1.2 times as long as
 * they do alone, by the median, and no batch of a scorer may fail. As many events that differ in
 * all are the control: where they delay the other tenant as much, the machine is busy with other
 * work. `--only "equal users"` takes one form.
 */
import { Agent } from 'node:http'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { readCpuSeconds } from '../../bench/measured-process.ts'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { sendRequest } from '../../support/http/send-request.ts'
import {
  createTenant,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import { type StackFacts, startStack } from '../../support/process/stack.ts'
import { patientMs, until } from '../../support/process/until.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'
import { count, describeCounts } from '../support/counts.ts'
import { describeTimes, print, readOptions, reportBroken } from '../support/drill.ts'
import { allDifferent, type FloodEvent, floods } from './floods.ts'

export type NeighboursResult = {
  form: string
  /** From the 200 of each event to its alert, in ms: without the flood, and beside it. */
  aloneMs: number[]
  besideMs: number[]
  /** CPU of the scorer for each event of the flood, in us. */
  cpuUs: number
  /** Responses to the flood by status. */
  statuses: ReadonlyMap<number, number>
  /** Attempts of a scorer that failed. */
  failures: number
}

export type NeighboursOptions = {
  events: number
  rate: number
  rounds: number
  only?: string
  onResult?: (result: NeighboursResult) => void
}

/** Events of the neighbour in a second. */
const neighbourRate = 4
const ratioMax = 1.2

/** Runs on its own stack. */
export async function runNeighbours(options: NeighboursOptions): Promise<NeighboursResult[]> {
  const running = await startStack()
  try {
    const { stack } = running
    const neighbour = await createTenant(stack, 'neighbour')
    const seconds = options.events / options.rate
    await measure(stack, neighbour, { label: 'warm', seconds })
    const results: NeighboursResult[] = []
    for (const [form, flood] of Object.entries(floods)) {
      if (options.only !== undefined && options.only !== form) continue
      const result: NeighboursResult = {
        form,
        aloneMs: [],
        besideMs: [],
        cpuUs: 0,
        failures: 0,
        statuses: new Map(),
      }
      let cpuSeconds = 0
      const readCpu = () => readCpuSeconds(stack.pids.scorer)
      for (let round = 1; round <= options.rounds; round++) {
        const label = `${form}-${round}`.replaceAll(' ', '-')
        const tenant = await createTenant(stack, `flood-${label}`)
        const events = await flood.prepare(running, tenant, options.events)
        const [idle, begun] = [readCpu(), Date.now()]
        result.aloneMs.push(...(await measure(stack, neighbour, { label: `${label}-a`, seconds })))
        const [alone, atMs] = [readCpu(), Date.now()]
        const before = await readFailures(stack)
        const flooding = send(stack, events, options.rate)
        result.besideMs.push(...(await measure(stack, neighbour, { label: `${label}-b`, seconds })))
        for (const status of await flooding) count(result.statuses as Map<number, number>, status)
        const beside = (readCpu() - alone) / (Date.now() - atMs)
        cpuSeconds += (beside - (alone - idle) / (atMs - begun)) * (Date.now() - atMs)
        result.failures += (await readFailures(stack)) - before
      }
      result.cpuUs = (cpuSeconds / (options.events * options.rounds)) * 1e6
      results.push(result)
      options.onResult?.(result)
    }
    return results
  } finally {
    await running.discard()
  }
}

/** Sends single risky events for some seconds. @returns how long the alert of each took, in ms */
async function measure(
  stack: StackFacts,
  { tenant_id: tenantId, hmac_secret: secret, public_api_key: key }: Tenant,
  { label, seconds }: { label: string; seconds: number },
): Promise<number[]> {
  const answeredMs = new Map<string, number>()
  let sent = 0
  const ended = Promise.withResolvers<void>()
  const loop = startOpenLoop(neighbourRate, async () => {
    if (sent >= neighbourRate * seconds) return ended.resolve()
    const device = `${label}-${++sent}`
    const body = toBody(tenantId, { device, session: device, signals: signalsOf.BLOCK })
    const { status } = await ingest(stack, secret, body)
    if (status !== 200) throw new Error(`an event of the neighbour got ${status}`)
    answeredMs.set(device, Date.now())
  })
  await ended.promise
  await loop.stop()
  return until('the alerts of the neighbour', async () => {
    const { alerts } = await readAlerts(stack, key)
    const took = alerts.flatMap(({ entity, created_at: createdAt }) => {
      const answered = answeredMs.get(entity.device.device_id)
      return answered === undefined ? [] : [Date.parse(createdAt) - answered]
    })
    return took.length === answeredMs.size ? took : null
  })
}

/** @returns the statuses of the responses */
async function send(
  stack: StackFacts,
  events: readonly FloodEvent[],
  rate: number,
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const statuses: number[] = []
  let next = 0
  const ended = Promise.withResolvers<void>()
  const loop = startOpenLoop(rate, async () => {
    const event = events[next++]
    if (event === undefined) return ended.resolve()
    const { body, secret, headers } = event
    const signature = signBody(body, secret)
    const { status } = await sendRequest(`${stack.ingest}/v1/rasp/ingest`, {
      agent,
      body,
      method: 'POST',
      limitMs: patientMs,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'x-service-signature': signature,
      },
    })
    statuses.push(status)
  })
  await ended.promise
  await loop.stop()
  agent.destroy()
  return statuses
}

const readFailures = ({ internal }: StackFacts) =>
  readMetric(internal.scorer, 'di_consume_failures_total')

const toRatio = ({ aloneMs, besideMs }: NeighboursResult): number =>
  percentile(besideMs, 0.5) / percentile(aloneMs, 0.5)

/** @returns the broken guarantees */
export function judgeNeighbours(results: readonly NeighboursResult[]): string[] {
  return results.flatMap((result) => {
    const { form, statuses, failures } = result
    const wrong: string[] = []
    const ratio = toRatio(result)
    if (form !== allDifferent && !(ratio <= ratioMax))
      wrong.push(`beside ${form} alerts took ${ratio.toFixed(2)} times as long`)
    if (failures > 0) wrong.push(`beside ${form} ${failures} attempts of a scorer failed`)
    if (statuses.size !== 1 || !statuses.has(200)) {
      wrong.push(`the flood of ${form} got ${describeCounts(statuses)}`)
    }
    return wrong
  })
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { events: 500, rate: 100, rounds: 3, only: '' })
  const { only, ...numbers } = options
  const results = await runNeighbours({
    ...numbers,
    ...(only === '' ? {} : { only }),
    onResult: (result) => {
      const { form, aloneMs, besideMs, statuses, cpuUs } = result
      const cpu = `${Math.round(cpuUs)} us of a scorer's CPU an event`
      print(`${form}: the flood got ${describeCounts(statuses)}; ${cpu}`)
      print(`  alert of the other tenant alone: ${describeTimes(aloneMs)}`)
      print(`  beside: ${describeTimes(besideMs)}; ${toRatio(result).toFixed(2)} times`)
    },
  })
  reportBroken(judgeNeighbours(results))
}
