/**
 * `npm run faults -- small-stream [--minutes 60] [--rate 500] [--mb 64]`: a stack whose telemetry
 * stream is far smaller than the telemetry of the run. Every response must be a 200, and everything
 * accepted must be stored and decided at the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import type { StreamFill } from '#shared/core/telemetry/streams/stream-capacity.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { patientMs, until } from '../../support/process/until.ts'
import { describeCounts } from '../support/counts.ts'
import { print, readOptions, reportBroken } from '../support/drill.ts'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import { startSteadyLoad } from '../support/steady-load.ts'

export type SmallStreamResult = {
  /** Responses by status. */
  statuses: ReadonlyMap<number, number>
  accepted: number
  /** Events with a row, and with a decision, by the reconciliation. */
  stored: number
  decided: number
  /** Bytes that passed through the stream, and the most that it held when polled. */
  bytesPassed: number
  bytesHeldMax: number
  bytesMax: number
  p99Ms: number
}

export type SmallStreamOptions = {
  /** It sends this long, and until twice the limit has passed through the stream. */
  seconds: number
  ratePerSecond: number
  streamBytes: number
  onPoll?: (line: string) => void
}

type Reconciliation = { data: { accepted: number; rows: number; decided: number }[] }

const tenantCount = 4
const pollMs = 500
const printMs = 60_000

/** Runs on its own stack. */
export async function runSmallStream(options: SmallStreamOptions): Promise<SmallStreamResult> {
  const { seconds, ratePerSecond, streamBytes, onPoll } = options
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
    let printedMs = begunMs
    const lastsMs = 1_000 * seconds
    let passed = 0
    for (let atMs = 0; atMs < lastsMs || passed < 2 * streamBytes; ) {
      await pause(pollMs)
      atMs = performance.now() - begunMs
      if (atMs > lastsMs + patientMs) throw new Error(`only ${passed} bytes passed through`)
      const fill = await readStreamFill(nats, telemetryStream)
      const { bytes } = fill
      passed = toBytesPassed(fill)
      bytesHeldMax = Math.max(bytesHeldMax, bytes)
      if (performance.now() - printedMs < printMs) continue
      printedMs = performance.now()
      onPoll?.(`${describeCounts(load.statuses)}; the stream holds ${bytes} bytes`)
    }
    await load.stop()
    await until('everything is decided', async () => {
      const { lastSequence } = await readStreamFill(nats, telemetryStream)
      return (await readLowWatermark(nats, nats.telemetryStreams[0]!)) >= lastSequence
    })
    const fill = await readStreamFill(nats, telemetryStream)
    const accepted = load.statuses.get(200) ?? 0
    const sums = async () => {
      const views = await Promise.all(
        tenants.map(({ tenant_id }) =>
          admin<Reconciliation>(stack, 'GET', `/tenants/${tenant_id}/reconciliation`),
        ),
      )
      const hours = views.flatMap(({ data }) => data)
      const sum = (of: 'rows' | 'decided') => hours.reduce((total, hour) => total + hour[of], 0)
      return { stored: sum('rows'), decided: sum('decided') }
    }
    const counted = async () => (await sums()).decided >= accepted
    await until('reconciliation has all of it', counted).catch(() => undefined)
    return {
      statuses: load.statuses,
      accepted,
      ...(await sums()),
      bytesPassed: toBytesPassed(fill),
      bytesHeldMax,
      bytesMax: fill.bytesMax,
      p99Ms: percentile(load.tookMs, 0.99),
    }
  } finally {
    await nats.close()
    await running.discard()
  }
}

/** All messages so far, at the size of those that it holds. */
const toBytesPassed = ({ bytes, lastSequence, messages }: StreamFill): number =>
  (bytes * lastSequence) / Math.max(1, messages)

/** @returns the broken guarantees */
export function judgeSmallStream(result: SmallStreamResult, options: SmallStreamOptions): string[] {
  const { statuses, accepted, stored, decided, bytesPassed, bytesMax } = result
  const wrong: string[] = []
  if (bytesMax !== options.streamBytes) wrong.push(`the limit of the stream is ${bytesMax} bytes`)
  if (statuses.size !== 1 || accepted === 0) wrong.push(`answers: ${describeCounts(statuses)}`)
  if (stored !== accepted) wrong.push(`${accepted} accepted, ${stored} stored`)
  if (decided !== accepted) wrong.push(`${accepted} accepted, ${decided} decided`)
  if (bytesPassed < 2 * bytesMax) wrong.push('less than twice the limit passed through the stream')
  return wrong
}

/** Runs the drill at full length and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { minutes, rate, mb } = readOptions(args, { minutes: 60, rate: 500, mb: 64 })
  const options: SmallStreamOptions = {
    seconds: 60 * minutes,
    ratePerSecond: rate,
    streamBytes: mb * 1024 ** 2,
    onPoll: (line) => print(`  ${line}`),
  }
  print(`${minutes} minutes at ${rate}/s through a stream of ${mb} MB`)
  const result = await runSmallStream(options)
  const toMb = (bytes: number) => (bytes / 1024 ** 2).toFixed(1)
  print(`answers: ${describeCounts(result.statuses)}; p99 ${result.p99Ms.toFixed(1)} ms`)
  print(`stored ${result.stored}, decided ${result.decided}`)
  print(
    `${toMb(result.bytesPassed)} MB passed through; it held ${toMb(result.bytesHeldMax)} MB at most`,
  )
  reportBroken(judgeSmallStream(result, options))
}
