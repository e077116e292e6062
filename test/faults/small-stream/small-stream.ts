/**
 * `npm run faults -- small-stream [--minutes 60] [--rate 500] [--mb 64]`: a whole stack whose
 * telemetry stream is far smaller than what goes through it. Every answer must be a 200, and
 * everything accepted must be stored and decided in the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import { startSteadyLoad } from '../support/steady-load.ts'

export type SmallStreamResult = {
  /** Answers by status. */
  statuses: ReadonlyMap<number, number>
  accepted: number
  /** Events that reconciliation has a row and a decision of. */
  stored: number
  decided: number
  /** Of the stream: bytes stored in it all in all, and the most it held at one look. */
  bytesStored: number
  bytesHeldMax: number
  bytesMax: number
  p99Ms: number
}

export type SmallStreamOptions = {
  seconds: number
  ratePerSecond: number
  streamBytes: number
  onLook?: (line: string) => void
}

type Ledger = { data: { accepted: number; rows: number; decided: number }[] }

const tenantCount = 4
const lookMs = 500
const sayMs = 60_000
const workedOffMs = 60_000

/** Runs the whole of it on a stack of its own. */
export async function runSmallStream(options: SmallStreamOptions): Promise<SmallStreamResult> {
  const { seconds, ratePerSecond, streamBytes, onLook } = options
  const env = { TELEMETRY_STREAM_MAX_BYTES: String(streamBytes) }
  const running = await startStack({ env })
  const nats = await connectQuietly(running.stack)
  try {
    const { stack } = running
    const tenants = await Promise.all(
      Array.from({ length: tenantCount }, (_, n) => createTenant(stack, `steady-${n}`)),
    )
    const load = startSteadyLoad({ ingestUrl: stack.ingest, tenants, ratePerSecond, label: 's' })
    const begunMs = performance.now()
    let bytesHeldMax = 0
    let saidMs = begunMs
    while (performance.now() - begunMs < 1_000 * seconds) {
      await pause(lookMs)
      const { bytes } = await readStreamFill(nats, telemetryStream)
      bytesHeldMax = Math.max(bytesHeldMax, bytes)
      if (performance.now() - saidMs < sayMs) continue
      saidMs = performance.now()
      onLook?.(`${describeStatuses(load.statuses)}; the stream holds ${bytes} bytes`)
    }
    await load.stop()
    await until(
      'everything is decided',
      async () => {
        const { lastSequence } = await readStreamFill(nats, telemetryStream)
        return (await readLowWatermark(nats)) >= lastSequence
      },
      workedOffMs,
    )
    const fill = await readStreamFill(nats, telemetryStream)
    const accepted = load.statuses.get(200) ?? 0
    const sums = async () => {
      const ledgers = await Promise.all(
        tenants.map(({ tenant_id }) =>
          admin<Ledger>(stack, 'GET', `/tenants/${tenant_id}/reconciliation?`),
        ),
      )
      const hours = ledgers.flatMap(({ data }) => data)
      const sum = (of: 'rows' | 'decided') => hours.reduce((total, hour) => total + hour[of], 0)
      return { stored: sum('rows'), decided: sum('decided') }
    }
    const counted = async () => (await sums()).decided >= accepted
    await until('reconciliation has all of it', counted, workedOffMs).catch(() => undefined)
    return {
      statuses: load.statuses,
      accepted,
      ...(await sums()),
      bytesStored: (fill.bytes * fill.lastSequence) / Math.max(1, fill.messages),
      bytesHeldMax,
      bytesMax: fill.bytesMax,
      p99Ms: percentile(load.tookMs, 0.99),
    }
  } finally {
    await nats.close()
    await running.discard()
  }
}

/** @returns the promises that were broken, in words */
export function judgeSmallStream(result: SmallStreamResult, options: SmallStreamOptions): string[] {
  const { statuses, accepted, stored, decided, bytesStored, bytesMax } = result
  const wrong: string[] = []
  if (bytesMax !== options.streamBytes) wrong.push(`the stream may hold ${bytesMax} bytes`)
  if (statuses.size !== 1 || accepted === 0) wrong.push(`answers: ${describeStatuses(statuses)}`)
  if (stored !== accepted) wrong.push(`${accepted} accepted, ${stored} stored`)
  if (decided !== accepted) wrong.push(`${accepted} accepted, ${decided} decided`)
  if (bytesStored < 2 * bytesMax) wrong.push('less than twice its room went through the stream')
  return wrong
}

/** `200: 5, 503: 1` */
export function describeStatuses(statuses: ReadonlyMap<number, number>): string {
  return [...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')
}

const say = (line: string) => process.stdout.write(`${line}\n`)

/** Runs it at full length and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '60' },
      rate: { type: 'string', default: '500' },
      mb: { type: 'string', default: '64' },
    },
  })
  const options: SmallStreamOptions = {
    seconds: 60 * Number(values.minutes),
    ratePerSecond: Number(values.rate),
    streamBytes: Number(values.mb) * 1024 ** 2,
    onLook: (line) => say(`  ${line}`),
  }
  say(`${values.minutes} minutes at ${values.rate}/s through a stream of ${values.mb} MB`)
  const result = await runSmallStream(options)
  const mb = (bytes: number) => (bytes / 1024 ** 2).toFixed(1)
  say(`answers: ${describeStatuses(result.statuses)}; p99 ${result.p99Ms.toFixed(1)} ms`)
  say(`stored ${result.stored}, decided ${result.decided}`)
  say(`${mb(result.bytesStored)} MB went through; it held ${mb(result.bytesHeldMax)} MB at most`)
  const broken = judgeSmallStream(result, options)
  for (const wrong of broken) say(`BROKEN: ${wrong}`)
  if (broken.length > 0) process.exitCode = 1
  else say('every promise held')
}
