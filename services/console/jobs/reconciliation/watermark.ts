/**
 * Advances the watermarks of reconciliation: the offset of each telemetry stream below which every
 * event is decided, with the counts that edges report. Events above it are in flight and never
 * count as a difference.
 */
import { isDeepStrictEqual } from 'node:util'
import { reconciliationHourMs } from '#shared/core/reconciliation/reconciliation.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { readMark } from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import type { Lease } from '#shared/io/leases/leases.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readDecidedWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { pause } from '#shared/io/process/pause.ts'
import { listAcceptedClaims } from '#shared/io/reconciliation/accepted-claims.ts'
import { readClockMs } from '#shared/io/reconciliation/reconciliation-postgres-store.ts'
import {
  type DecidedMark,
  insertAcceptedClaims,
  markDecided,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'

type WatermarkDeps = {
  findNats: () => Nats | null
  postgres: Postgres
  clickhouse: Clickhouse
  /** Checks edges' reports: of the purpose `edge report`. */
  reportProver: Prover
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
}

export type Watermark = {
  /**
   * Waits a few seconds until every published event is decided and replicated, then writes the
   * watermarks and the edges' counts.
   * @returns false when that took too long; the counts follow with the next call
   * @throws Error when NATS is not connected
   */
  advance: (lease: Lease) => Promise<boolean>
}

/** How often an unchanged watermark is written. */
const idleWriteMs = 10_000
/** How long to wait for decisions, and twice as long for replication. */
const waitMaxMs = 5_000
const decidedPollMs = 100
/** Replication runs every two seconds. */
const replicatedPollMs = 500
/** The clock is read up to this long after the snapshot that a replication round copies. */
const clockMarginMs = 1_000

/** @param stopped ends every wait */
export function createWatermark(deps: WatermarkDeps, stopped: AbortSignal): Watermark {
  const { clickhouse, postgres, reportProver, nowMs } = deps
  /** The counts that are written, as JSON; null before the first time. */
  let writtenClaims: ReadonlySet<string> | null = null
  let written: { marks: readonly DecidedMark[]; atMs: number } | null = null

  /** All counts at first, then those of the last hours: an edge reports the current hour only. */
  const readClaims = async (nats: Nats) => {
    if (writtenClaims === null) return listAcceptedClaims(nats, reportProver, null)
    const hour = Math.floor(deps.wallMs() / reconciliationHourMs)
    const claims = []
    for (const one of [hour - 1, hour, hour + 1]) {
      claims.push(...(await listAcceptedClaims(nats, reportProver, one)))
    }
    return claims
  }
  /** Waits until the scorers' watermark reaches a sequence number. @returns the watermark */
  const awaitDecided = async (
    nats: Nats,
    stream: TelemetryStream,
    sequence: number,
  ): Promise<number> => {
    const deadlineMs = nowMs() + waitMaxMs
    let decided = await readDecidedWatermark(nats, stream)
    while (decided < sequence && nowMs() < deadlineMs && !stopped.aborted) {
      await pause(decidedPollMs, stopped)
      decided = await readDecidedWatermark(nats, stream)
    }
    return decided
  }
  /** Waits until every message that a stream has now is decided, or for some seconds. */
  const readDecidedMark = async (nats: Nats, stream: TelemetryStream) => {
    const { state } = await nats.manager.streams.info(stream.stream)
    const decided = await awaitDecided(nats, stream, state.last_seq)
    // Read later: a scorer notices a stream that was put back before it decides more of it.
    const { offsets } = await readStream(nats, postgres, stream.stream)
    const mark: DecidedMark = { stream: stream.number, streamOffset: offsets.of(decided + 1) }
    return { mark, isComplete: decided >= state.last_seq }
  }
  const awaitReplicated = async (atMs: number): Promise<boolean> => {
    const deadlineMs = nowMs() + 2 * waitMaxMs
    while ((await readMark(clickhouse)).copiedAtMs < atMs) {
      if (nowMs() > deadlineMs || stopped.aborted) return false
      await pause(replicatedPollMs, stopped)
    }
    return true
  }
  return {
    advance: async (lease) => {
      const nats = deps.findNats()
      if (nats?.connected() !== true) throw new Error('NATS is not connected')
      // Read the counts before the streams: they then have every message that the counts include.
      const all = await readClaims(nats)
      const texts = new Set(all.map((claim) => JSON.stringify(claim)))
      const claims = all.filter((claim) => !writtenClaims?.has(JSON.stringify(claim)))
      const reached = await Promise.all(
        nats.telemetryStreams.map((stream) => readDecidedMark(nats, stream)),
      )
      const marks = reached.map(({ mark }) => mark)
      const isComplete = reached.every((one) => one.isComplete)
      const isIdle = claims.length === 0 && isDeepStrictEqual(marks, written?.marks)
      if (isIdle && nowMs() - written!.atMs < idleWriteMs) return isComplete
      // Decisions up to here are committed, so a later replication round copies them.
      const atMs = (await readClockMs(postgres)) + clockMarginMs
      await markDecided(lease.fence(clickhouse), { marks, atMs })
      written = { marks, atMs: nowMs() }
      if (!isComplete || !(await awaitReplicated(atMs))) return false
      await insertAcceptedClaims(lease.fence(clickhouse), claims)
      writtenClaims = texts
      return true
    },
  }
}
