/**
 * Fills `telemetry` with a long history quickly: a few thousand events of the simulated fleet,
 * stored as a scorer stores them, and copies of those with their own ids and times, made inside the
 * engine, with their expected alerts. Tables derived from `telemetry` are left out: this benchmark
 * does not read them.
 */
import { toEventId } from '#shared/core/base/ids.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { decodeBatch, encodeEventHead, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { makePlan } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'

export const historyTenant = 'fleet'

const views = ['devices', 'sessions', 'user_devices', 'activity', 'sdk_baselines']
const historyStartMs = Date.UTC(2026, 8, 1)
const seed = 7

/** The result: events are a whole number of copies, at least the required number. */
export type FilledHistory = { events: number; seeds: number; bodyBytes: number }

/** @param events the minimum number of events */
export async function fillHistory(clickhouse: Clickhouse, events: number): Promise<FilledHistory> {
  const run = (query: string) => clickhouse.command({ query })
  const { seeds, bodyBytes } = await insertSeeds(clickhouse)
  for (const view of views) await run(`drop view if exists ${view}_of_telemetry`)
  await run(
    'create table seeds engine = MergeTree order by tuple() as ' +
      'select * except row_version, toUInt64(rowNumberInAllBlocks()) as place from telemetry final',
  )
  await run('truncate table telemetry')
  // Ids rise, so merges are useless; they would only slow the inserts.
  await run('system stop merges telemetry')
  const copies = Math.ceil(events / seeds)
  const half = Math.ceil(copies / 2)
  // Two at a time: one insert keeps one core busy.
  await Promise.all([
    insertCopies(run, { seeds, from: 0, to: half }),
    insertCopies(run, { seeds, from: half, to: copies }),
  ])
  await run('system start merges telemetry')
  await insertAlerts(run)
  return { events: copies * seeds, seeds, bodyBytes }
}

/**
 * The alert of every session and action; in one of twenty more than the event's own score counts.
 */
async function insertAlerts(run: (query: string) => Promise<unknown>): Promise<void> {
  await run(`
    insert into alerts_replica (tenant_id, created_at, alert_id, seq, device_id, session_id,
      event_id, action, risk_score, rasp_score, disposition, round)
    select '${historyTenant}', min(received_at), hex(sipHash128(session_id, rasp_action)),
      rowNumberInAllBlocks(), device_id, session_id, any(event_id), toString(rasp_action),
      max(rasp_score) + if(sipHash64(session_id) % 20 = 0, 5, 0), max(rasp_score),
      ['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'][1 + sipHash64(session_id) % 4], 1
    from telemetry where rasp_action != 'ALLOW'
    group by device_id, session_id, rasp_action`)
}

async function insertSeeds(clickhouse: Clickhouse): Promise<Omit<FilledHistory, 'events'>> {
  const scorer = compilePolicy(defaultPolicy)
  const phones = makePopulation(seed, 3_000)
  const plan = makePlan({ seed, phones, ratePerSecond: 200, durationMs: 30_000 })
  const options = { plan, tenantId: historyTenant, scorer, startedAtMs: historyStartMs }
  let bytes = 0
  const seeds = Array.from(plan.sessionOf, (_, index) => {
    const { body, scored } = prepareEvent(options, index, index)
    bytes += body.length
    const head = encodeEventHead(
      {
        event_id: toEventId(body),
        tenant_id: historyTenant,
        received_at: historyStartMs + index,
        rasp_score: scored.score,
        rasp_action: scored.action,
        reasons: scored.reasons,
        policy_version: 1,
        policy_hash: toPolicyHash(defaultPolicy),
        epoch: 1,
      },
      body.length,
    )
    const message = Buffer.concat([Buffer.from(`[${head}`), body, Buffer.from('}]')])
    return decodeBatch(message, toStreamOffset(0, index + 1)).events[0]!
  })
  await createTelemetryStore(clickhouse).insertTelemetry(seeds)
  return { seeds: seeds.length, bodyBytes: bytes / seeds.length }
}

/**
 * Copies in one insert, which is one part: a part that is large from the start is merged less
 * often.
 */
const copiesPerInsert = 44

type Copies = { seeds: number; from: number; to: number }

async function insertCopies(
  run: (query: string) => Promise<unknown>,
  { seeds, from, to }: Copies,
): Promise<void> {
  for (let first = from; first < to; first += copiesPerInsert) {
    const parts = Array.from(
      { length: Math.min(copiesPerInsert, to - first) },
      (_, n) => `select *, ${(first + n) * seeds} + place as n from seeds`,
    )
    // Ids that rise with n are in the order of the table, and need no sort; 4 events per session, 3
    // sessions per device. Their tails are as random as those of real ids.
    await run(`
      insert into telemetry (* except row_version)
      select * replace (
        concat('and-', leftPad(toString(intDiv(n, 12)), 8, '0'),
          substring(hex(sipHash128(intDiv(n, 12))), 1, 20)) as device_id,
        concat(leftPad(toString(intDiv(n, 4)), 9, '0'),
          substring(hex(sipHash128(intDiv(n, 4), 1)), 1, 23)) as session_id,
        concat('evt_', leftPad(toString(n), 9, '0'),
          substring(hex(sipHash128(n)), 1, 30)) as event_id,
        n + 1000 as stream_offset,
        fromUnixTimestamp64Milli(
          ${historyStartMs} + toInt64(sipHash64(intDiv(n, 4)) % (28 * 86400000)), 'UTC'
        ) as received_at
      ) except (n, place)
      from (${parts.join(' union all ')})
      settings max_threads = 1, min_insert_block_size_rows = 100000,
        min_insert_block_size_bytes = 4000000000`)
  }
}
