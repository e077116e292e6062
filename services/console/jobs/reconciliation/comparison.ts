/**
 * Compares the stages of reconciliation hour by hour. A difference counts when a second comparison
 * a moment later still finds it.
 */
import { reconciliationHourMs } from '#shared/core/reconciliation/reconciliation.ts'
import { offsetsPerMessage } from '#shared/core/telemetry/event-batch.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { pause } from '#shared/io/process/pause.ts'
import { listTenantIds } from '#shared/io/reconciliation/reconciliation-postgres-store.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'
import type { DifferenceGauge, FoundDifference, Span } from './difference-gauge.ts'

type ComparisonDeps = {
  findNats: () => Nats | null
  postgres: Postgres
  store: ReconciliationStore
  log: Log
  /** The wall clock. */
  wallMs: () => number
  /** How long a difference must last to be reported, 5 s by default. */
  confirmMs?: number
}

export type Comparison = {
  /**
   * Compares the hours from `fromMs` to before `toMs` (open when left out), sets the gauge and logs
   * each difference.
   * @returns the confirmed differences
   */
  compare: (fromMs: number, toMs?: number) => Promise<FoundDifference[]>
}

const confirmDefaultMs = 5_000
/** How far back lost messages are searched at the start, in time and in number. */
const searchMs = 20 * reconciliationHourMs
const searchMessagesMax = 1_000_000

/** @param stopped ends the wait between two comparisons */
export function createComparison(
  deps: ComparisonDeps,
  gauge: DifferenceGauge,
  stopped: AbortSignal,
): Comparison {
  const { store, log, wallMs, confirmMs = confirmDefaultMs } = deps
  const countLost = createLostMessageCount(deps)

  const findDifferences = async (span: Span): Promise<FoundDifference[]> => {
    const tenantIds = await listTenantIds(deps.postgres)
    const { hours } = await store.readReconciliation(span)
    const found = hours
      .filter(({ tenantId }) => tenantIds.has(tenantId))
      .flatMap(({ tenantId, hourMs, differences }) =>
        differences.map((difference): FoundDifference => ({ tenantId, hourMs, ...difference })),
      )
    const lost = await countLost()
    if (lost === 0) return found
    const message = { stage: 'messages', kind: 'missing', count: lost } as const
    return [...found, { ...message, ids: [], tenantId: null, hourMs: null }]
  }
  const findConfirmed = async (span: Span): Promise<FoundDifference[]> => {
    const first = await findDifferences(span)
    if (first.length === 0) return []
    await pause(confirmMs, stopped)
    const before = new Map(first.map((one) => [toKey(one), one]))
    return (await findDifferences(span)).flatMap((one) => {
      const earlier = before.get(toKey(one))
      return earlier === undefined ? [] : [{ ...one, count: Math.min(one.count, earlier.count) }]
    })
  }
  return {
    compare: async (fromMs, toMs) => {
      // An open span reaches a day ahead, since an edge's clock may be ahead.
      const span = { fromMs, toMs: toMs ?? wallMs() + 24 * reconciliationHourMs }
      const found = await findConfirmed(span)
      gauge.replace(span, found)
      for (const { tenantId, hourMs, ...difference } of found) {
        const hour = hourMs === null ? null : new Date(hourMs).toISOString()
        log.error({ tenant: tenantId, hour, ...difference }, 'reconciliation found a difference')
      }
      return found
    },
  }
}

const toKey = ({ tenantId, hourMs, stage, kind }: FoundDifference): string =>
  `${tenantId} ${hourMs} ${stage} ${kind}`

/** @returns counts messages below the low watermarks without an entry of any scorer */
function createLostMessageCount({ findNats, postgres, store, wallMs }: ComparisonDeps) {
  /** By stream, the offset below which no message of its present incarnation is lost. */
  const complete = new Map<number, { start: number; streamOffset: number }>()
  const countLost = async (nats: Nats, one: TelemetryStream): Promise<number> => {
    const stream = one.number
    const watermark = await readDecidedWatermark(nats, one)
    const { offsets } = await readStream(nats, postgres, one.stream)
    const { start } = offsets
    const before = complete.get(stream)
    const completeTo = before?.start === start ? before.streamOffset : 0
    // After a start, only recent messages: retention may have removed the rows of older ones.
    const first =
      completeTo > 0 ? completeTo : await store.readFirstStreamOffset(stream, wallMs() - searchMs)
    if (first === null) return 0
    const to = offsets.of(watermark + 1)
    const from = Math.max(first, start, to - searchMessagesMax * offsetsPerMessage)
    if (from >= to) return 0
    const lost = await store.countUnknownMessages({ stream, from, to, step: offsetsPerMessage })
    if (lost === 0) complete.set(stream, { start, streamOffset: to })
    return lost
  }
  return async (): Promise<number> => {
    const nats = findNats()
    if (nats?.connected() !== true) return 0
    let lost = 0
    for (const stream of nats.telemetryStreams) lost += await countLost(nats, stream)
    return lost
  }
}
