/**
 * `npm run faults -- standby [--seconds 20] [--rate 150] [--asynchronous]`: the stack on a Postgres
 * with a standby. Under load the primary is killed and the standby promoted, and no process is
 * restarted. Exits with 1 when a submission got anything but a 200, or when something accepted is
 * not stored, decided and delivered. With `--asynchronous` commits do not wait for the standby:
 * what the promotion lost is printed and no failure.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry } from '../../support/http/send-request.ts'
import { admin, createTenant, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { type StackFacts, startStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { startStandby } from '../../support/servers/postgres-standby.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'
import { count, describeCounts } from '../support/counts.ts'
import { print, readOptions, reportBroken, seconds } from '../support/drill.ts'

type StandbyOptions = { seconds: number; ratePerSecond: number; synchronous: boolean }

type Hour = {
  accepted: number
  rows: number
  decided: number
  alerts_due: number
  alerts: number
  delivered: number
}

type StandbyResult = {
  /** Responses by status. */
  statuses: ReadonlyMap<number, number>
  /** From the promotion until every process was ready. */
  readyAgainMs: number
  /** Reconciliation of all tenants. */
  hour: Hour
  /** Alerts that the receiver got, each counted once. */
  received: number
}

const tenantCount = 3
/** Every so many submissions one deserves an alert. */
const alertEvery = 5
const settleLimitMs = 90_000

async function runStandby(options: StandbyOptions): Promise<StandbyResult> {
  const primary = await startPostgres({ settings: { fsync: 'on' } })
  const { synchronous } = options
  const standby = await startStandby(primary, { synchronous })
  const receiver = await startReceiver()
  const { username, password } = new URL(primary.url)
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`
  const database = 'device_intelligence?target_session_attrs=read-write'
  const env = { POSTGRES_URL: `postgres://${username}:${password}@${hosts}/${database}` }
  const running = await startStack({ env })
  try {
    const { stack } = running
    const names = Array.from({ length: tenantCount }, (_, n) => `standby-${n}`)
    const tenants = await Promise.all(names.map((name) => createTenant(stack, name, receiver.url)))
    const statuses = new Map<number, number>()
    const load = startOpenLoop(options.ratePerSecond, () => sendNext(stack, tenants, statuses))
    await pause((1_000 * options.seconds) / 2)
    await primary.kill('SIGKILL')
    // Retries, pools and readiness all meet a server that is away.
    await pause(2_000)
    await standby.promote()
    const promotedMs = performance.now()
    await until('every process is ready', () => isReady(stack), settleLimitMs)
    const readyAgainMs = performance.now() - promotedMs
    await pause((1_000 * options.seconds) / 2)
    await load.stop()
    agent.destroy()
    const accepted = statuses.get(200) ?? 0
    const isSettled = async () => {
      const hour = await readHours(stack, tenants)
      return hour.decided >= accepted && hour.delivered >= hour.alerts_due
    }
    await until('everything is delivered', isSettled, settleLimitMs).catch(() => undefined)
    const hour = await readHours(stack, tenants)
    const ids = new Set(receiver.requests.map(({ headers }) => headers['x-service-delivery']))
    return { statuses, readyAgainMs, hour, received: ids.size }
  } finally {
    await running.discard()
    await receiver.close()
    await standby.stop()
    await primary.stop()
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 })
let made = 0

async function sendNext(
  stack: StackFacts,
  tenants: readonly Tenant[],
  statuses: Map<number, number>,
): Promise<void> {
  const { tenant_id: tenantId, hmac_secret: secret } = tenants[made % tenants.length]!
  const name = `${++made}`
  const signals = made % alertEvery === 0 ? { signals: signalsOf.BLOCK } : {}
  const body = toBody(tenantId, { device: `d-${name}`, session: `s-${name}`, ...signals })
  const { status } = await postTelemetry(stack.ingest, { agent, body, secret, limitMs: 10_000 })
  count(statuses, status)
}

async function isReady({ internal }: StackFacts): Promise<boolean> {
  const answers = await Promise.all(Object.values(internal).map((url) => fetch(`${url}/readyz`)))
  return answers.every(({ status }) => status === 200)
}

async function readHours(stack: StackFacts, tenants: readonly Tenant[]): Promise<Hour> {
  const views = await Promise.all(
    tenants.map(({ tenant_id }) =>
      admin<{ data: Hour[] }>(stack, 'GET', `/tenants/${tenant_id}/reconciliation`),
    ),
  )
  const hours = views.flatMap(({ data }) => data)
  const sum = (of: keyof Hour) => hours.reduce((total, hour) => total + hour[of], 0)
  return {
    accepted: sum('accepted'),
    rows: sum('rows'),
    decided: sum('decided'),
    alerts_due: sum('alerts_due'),
    alerts: sum('alerts'),
    delivered: sum('delivered'),
  }
}

/** @returns the broken guarantees */
function judgeStandby({ statuses, hour, received }: StandbyResult, synchronous: boolean): string[] {
  const accepted = statuses.get(200) ?? 0
  const wrong: string[] = []
  if (statuses.size !== 1 || accepted === 0) wrong.push(`answers: ${describeCounts(statuses)}`)
  if (hour.rows !== accepted) wrong.push(`${accepted} accepted, ${hour.rows} stored`)
  if (hour.decided !== accepted) wrong.push(`${accepted} accepted, ${hour.decided} decided`)
  if (hour.alerts_due < accepted / (2 * alertEvery)) wrong.push('too few alerts')
  if (!synchronous) return wrong
  const { alerts_due: due, alerts, delivered } = hour
  if (alerts !== due) wrong.push(`${due} alerts are due, ${alerts} exist`)
  if (delivered !== due) wrong.push(`${due} alerts are due, ${delivered} are delivered`)
  if (received < due) wrong.push(`${due} alerts are due, the receiver got ${received}`)
  return wrong
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { seconds: 20, rate: 150, asynchronous: false })
  const synchronous = !options.asynchronous
  print(`${options.seconds} s at ${options.rate}/s; commits wait for the standby: ${synchronous}`)
  const result = await runStandby({
    seconds: options.seconds,
    ratePerSecond: options.rate,
    synchronous,
  })
  const { hour } = result
  print(`answers: ${describeCounts(result.statuses)}`)
  print(`every process was ready ${seconds(result.readyAgainMs)} after the promotion`)
  print(
    `stored ${hour.rows}, decided ${hour.decided}; of ${hour.alerts_due} alerts that are due ` +
      `${hour.alerts} exist and ${hour.delivered} are delivered`,
  )
  reportBroken(judgeStandby(result, synchronous))
}
