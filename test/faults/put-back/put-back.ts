/**
 * `npm run faults -- put-back [--rounds 3] [--events 400] [--streams 1]`: a whole stack goes on
 * from an earlier copy of the files of its JetStream, again and again from the same one. Of two
 * telemetry streams (`--streams 2`) only the second one is put back, and each has a tenant with
 * these events. Exits with 1 when an event that was accepted and stored before, or accepted
 * afterwards, is missing or there twice, has the stream offset of another, or when reconciliation
 * does not agree.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toTelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { postTelemetry } from '../../support/http/send-request.ts'
import { admin, createTenant, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { type StackFacts, startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { findStreamFiles } from '../../support/servers/nats/nats-server.ts'
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

/** Of a tenant. */
type PutBackResult = {
  tenantId: string
  accepted: number
  hours: Hour[]
  /** Of the rows of telemetry. */
  events: number
  offsets: number
  /** The numbers of the streams that its events came from. */
  streams: number[]
}

/** Every so many submissions one deserves an alert. */
const alertEvery = 5
const atOnce = 16
const settleLimitMs = 60_000

type PutBackOptions = { rounds: number; events: number; streams: number }

/** @returns by tenant, the one of the stream that is put back first */
async function runPutBack({
  rounds,
  events: eventsPerRound,
  streams,
}: PutBackOptions): Promise<PutBackResult[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'di-put-back-'))
  const copy = join(dataDir, 'nats-copy')
  const env = { TELEMETRY_STREAMS: String(streams) }
  let running = await startStack({ dataDir, env })
  try {
    const dir = join(dataDir, 'nats')
    const files = streams === 1 ? dir : findStreamFiles(dir, toTelemetryStream(streams).stream)
    const tenants: Tenant[] = []
    // A tenant gets the stream with the fewest: the first one is that of the demo tenant.
    for (const name of ['put-back', 'beside'].slice(0, streams)) {
      tenants.push(await createTenant(running.stack, name))
    }
    let accepted = 0
    const send = async (events: number) => {
      for (const tenant of tenants) {
        await sendAll(running.stack, tenant, { from: accepted, count: events })
      }
      accepted += events
      for (const tenant of tenants) await settled(running.stack, tenant, accepted)
    }
    const restart = async (change: () => void): Promise<TestStack> => {
      const { portBase } = running
      await running.stop()
      change()
      return startStack({ dataDir, portBase, env })
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
    const results: PutBackResult[] = []
    for (const tenant of tenants) {
      const { tenant_id: tenantId } = tenant
      const hours = await readHours(running.stack, tenant)
      results.push({ tenantId, accepted, hours, ...(await countOffsets(running, tenant)) })
    }
    return results
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

async function readHours(stack: StackFacts, tenant: Tenant): Promise<Hour[]> {
  const path = `/tenants/${tenant.tenant_id}/reconciliation`
  return (await admin<{ data: Hour[] }>(stack, 'GET', path)).data
}

const sum = (hours: readonly Hour[], of: Exclude<keyof Hour, 'differences'>) =>
  hours.reduce((total, hour) => total + hour[of], 0)

async function settled(stack: StackFacts, tenant: Tenant, accepted: number): Promise<void> {
  const isSettled = async () => sum(await readHours(stack, tenant), 'decided') >= accepted
  await until('everything is decided', isSettled, settleLimitMs).catch(() => undefined)
}

async function countOffsets(
  { stack }: TestStack,
  { tenant_id: tenantId }: Tenant,
): Promise<Pick<PutBackResult, 'events' | 'offsets' | 'streams'>> {
  const clickhouse = createClickhouse(stack.clickhouse, { name: 'drill' })
  try {
    const result = await clickhouse.query({
      query: `select uniqExact(event_id), uniqExact(stream_offset),
          (select groupUniqArray(stream) from reconciliation_entries
            where tenant_id = {tenant:String})
        from telemetry where tenant_id = {tenant:String}`,
      query_params: { tenant: tenantId },
      format: 'JSONCompactEachRow',
    })
    type Counted = [events: number, offsets: number, streams: number[]]
    const [[events, offsets, streams] = [0, 0, []]] = await result.json<Counted>()
    return { events, offsets, streams }
  } finally {
    await clickhouse.close()
  }
}

/** @returns the broken guarantees of a tenant on a stream */
function judgePutBack(
  { tenantId, accepted, hours, events, offsets, streams }: PutBackResult,
  stream: number,
): string[] {
  const wrong: string[] = []
  if (String(streams) !== String(stream)) wrong.push(`${streams} is its stream, not ${stream}`)
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
  return wrong.map((one) => `${tenantId}: ${one}`)
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { rounds: 3, events: 400, streams: 1 })
  const { rounds, streams } = options
  if (streams !== 1 && streams !== 2) throw new Error('--streams is 1 or 2')
  const results = await runPutBack(options)
  for (const { tenantId, accepted, events, offsets, hours } of results) {
    print(`${tenantId}: stream ${streams} was put back ${rounds} times; ${accepted} accepted`)
    print(`${events} events in ClickHouse with ${offsets} stream offsets`)
    print(`alerts that are due: ${sum(hours, 'alerts_due')}`)
  }
  // The second tenant is on the first stream.
  reportBroken(results.flatMap((result, index) => judgePutBack(result, streams - index)))
}
