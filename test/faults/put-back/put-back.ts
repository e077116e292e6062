/**
 * `npm run faults -- put-back [--rounds 3] [--events 400]`: a whole stack goes on from an earlier
 * copy of the files of its JetStream, again and again from the same one. Exits with 1 when an event
 * that was accepted and stored before, or accepted afterwards, is missing or there twice, has the
 * stream offset of another, or when reconciliation does not agree.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { postTelemetry } from '../../support/http/send-request.ts'
import { admin, createTenant, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { type StackFacts, startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'
import { print, readOptions, reportBroken } from '../support/drill.ts'

type Hour = {
  stored: number
  rows: number
  decided: number
  alerts_due: number
  alerts: number
  deliveries: number
  differences: unknown[]
}

type PutBackResult = {
  accepted: number
  hours: Hour[]
  /** Of the rows of telemetry. */
  events: number
  offsets: number
}

/** Every so many submissions one deserves an alert. */
const alertEvery = 5
const atOnce = 16
const settleLimitMs = 60_000

async function runPutBack(rounds: number, eventsPerRound: number): Promise<PutBackResult> {
  const dataDir = mkdtempSync(join(tmpdir(), 'di-put-back-'))
  const files = join(dataDir, 'nats')
  const copy = join(dataDir, 'nats-copy')
  let running = await startStack({ dataDir })
  try {
    const tenant = await createTenant(running.stack, 'put-back')
    let accepted = 0
    const send = async (events: number) => {
      await sendAll(running.stack, tenant, { from: accepted, count: events })
      accepted += events
      await settled(running.stack, accepted)
    }
    const restart = async (change: () => void): Promise<TestStack> => {
      const { portBase } = running
      await running.stop()
      change()
      return startStack({ dataDir, portBase })
    }
    await send(eventsPerRound)
    running = await restart(() => cpSync(files, copy, { recursive: true }))
    await send(eventsPerRound)
    for (let round = 1; round <= rounds; round++) {
      running = await restart(() => {
        rmSync(files, { recursive: true })
        cpSync(copy, files, { recursive: true })
      })
      // Fewer than the copy lacks, as many, and more.
      await send(Math.ceil((eventsPerRound * round) / 2))
    }
    return { accepted, hours: await readHours(running.stack), ...(await countOffsets(running)) }
  } finally {
    await running.discard()
  }
}

async function sendAll(
  stack: StackFacts,
  { tenant_id: tenantId, hmac_secret: secret }: Tenant,
  { from, count }: { from: number; count: number },
): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  let next = from
  const sender = async () => {
    while (next < from + count) {
      const name = `${++next}`
      const signals = next % alertEvery === 0 ? { signals: signalsOf.BLOCK } : {}
      const body = toBody(tenantId, { device: `d-${name}`, session: `s-${name}`, ...signals })
      const { status } = await postTelemetry(stack.ingest, {
        agent,
        body,
        secret,
        limitMs: 10_000,
      })
      if (status !== 200) throw new Error(`a submission got ${status}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
  agent.destroy()
}

async function readHours(stack: StackFacts): Promise<Hour[]> {
  const path = '/tenants/put-back/reconciliation'
  return (await admin<{ data: Hour[] }>(stack, 'GET', path)).data
}

const sum = (hours: readonly Hour[], of: Exclude<keyof Hour, 'differences'>) =>
  hours.reduce((total, hour) => total + hour[of], 0)

async function settled(stack: StackFacts, accepted: number): Promise<void> {
  const isSettled = async () => sum(await readHours(stack), 'decided') >= accepted
  await until('everything is decided', isSettled, settleLimitMs).catch(() => undefined)
}

async function countOffsets({ stack }: TestStack): Promise<{ events: number; offsets: number }> {
  const clickhouse = createClickhouse(stack.clickhouse, { name: 'drill' })
  try {
    const result = await clickhouse.query({
      query: `select uniqExact(event_id), uniqExact(stream_offset) from telemetry
        where tenant_id = 'put-back'`,
      format: 'JSONCompactEachRow',
    })
    const [[events, offsets] = [0, 0]] = await result.json<[number, number]>()
    return { events, offsets }
  } finally {
    await clickhouse.close()
  }
}

/** @returns the broken guarantees */
function judgePutBack({ accepted, hours, events, offsets }: PutBackResult): string[] {
  const wrong: string[] = []
  for (const what of ['stored', 'rows', 'decided'] as const) {
    const found = sum(hours, what)
    if (found !== accepted) wrong.push(`${accepted} accepted, ${what}: ${found}`)
  }
  const due = Math.floor(accepted / alertEvery)
  for (const what of ['alerts_due', 'alerts', 'deliveries'] as const) {
    const found = sum(hours, what)
    if (found !== due) wrong.push(`${due} alerts are due, ${what}: ${found}`)
  }
  if (events !== accepted) wrong.push(`${accepted} accepted, ${events} events in ClickHouse`)
  if (offsets !== events) wrong.push(`${events} events have ${offsets} stream offsets`)
  const differences = hours.flatMap((hour) => hour.differences)
  if (differences.length > 0) wrong.push(`reconciliation: ${JSON.stringify(differences)}`)
  return wrong
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { rounds, events } = readOptions(args, { rounds: 3, events: 400 })
  const result = await runPutBack(rounds, events)
  print(`${rounds} times put back; ${result.accepted} accepted`)
  print(`${result.events} events in ClickHouse with ${result.offsets} stream offsets`)
  print(`alerts that are due: ${sum(result.hours, 'alerts_due')}`)
  reportBroken(judgePutBack(result))
}
