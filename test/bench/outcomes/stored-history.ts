/**
 * The time and the memory of a suggestion over a stored history: ClickHouse reads the sessions, the
 * decisions are few, and 50,000 sessions have labels. What they say is drawn by the score, since
 * here only the work counts.
 */
import { setTimeout } from 'node:timers/promises'
import {
  onlyWeights,
  type SuggestOptions,
  suggestPolicy,
} from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readOutcomeTable } from '#shared/io/policies/outcome-table-store.ts'
import { fillHistory, historyTenant } from '../../support/scoring/backtest-history.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { readClickhouseVersion } from '../report.ts'

export type StoredMeasure = {
  version: string
  events: number
  sessions: number
  labelled: number
  rows: number
  readSeconds: number
  suggestSeconds: number
  /** The most that one query of the engine used. */
  engineMiB: number
}

/** @param events the least number of events */
export async function measureStored(events: number, labels: number): Promise<StoredMeasure> {
  const server = await startClickhouse()
  await migrateClickhouse(server.url)
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 600_000 })
  try {
    const filled = await fillHistory(clickhouse, events)
    await insertSessions(clickhouse)
    await insertLabels(clickhouse, { sessions: filled.events / 4, labels })
    let isRead = false
    const peak = watchPeak(clickhouse, () => isRead)
    let startedAt = performance.now()
    const range = { tenantId: historyTenant, sinceMs: 0 }
    const reading = readOutcomeTable(clickhouse, { range, policy: defaultPolicy })
    let step = await reading.next()
    while (!step.done) step = await reading.next()
    const readSeconds = (performance.now() - startedAt) / 1000
    isRead = true
    const { table, sessions } = step.value!
    startedAt = performance.now()
    const options: SuggestOptions = { freed: onlyWeights, seed: 1 }
    const answer = suggestPolicy(defaultPolicy, table, options)
    if ('refused' in answer) throw new Error(JSON.stringify(answer.refused))
    return {
      version: await readClickhouseVersion(clickhouse),
      events: filled.events,
      sessions,
      labelled: table.rows.reduce((sum, row) => sum + row.fraud + row.legitimate, 0),
      rows: table.rows.length,
      readSeconds,
      suggestSeconds: (performance.now() - startedAt) / 1000,
      engineMiB: await peak,
    }
  } finally {
    await clickhouse.close()
    await server.stop()
  }
}

/** The view that fills them is off while the history is made. */
const insertSessions = (clickhouse: Clickhouse) =>
  clickhouse.command({
    query: `insert into sessions (tenant_id, device_id, session_id, started_at, last_seen_at, users)
      select tenant_id, device_id, session_id, min(received_at), max(received_at), []
      from telemetry group by tenant_id, device_id, session_id`,
  })

async function insertLabels(
  clickhouse: Clickhouse,
  { sessions, labels }: { sessions: number; labels: number },
): Promise<void> {
  const one = Math.max(1, Math.round(sessions / labels))
  await clickhouse.command({
    query: `insert into labels_replica (tenant_id, created_at, label_id, seq, subject_kind,
        subject_id, label, occurred_at, covered_days, round)
      select tenant_id, min(received_at), concat('lbl_', session_id), rowNumberInAllBlocks() + 1,
        'session', session_id,
        if(sipHash64(session_id, 'fraud') % 100 < 5 + max(rasp_score), 'fraud', 'legitimate'),
        min(received_at), 30, 1
      from telemetry
      group by tenant_id, device_id, session_id
      having sipHash64(session_id, 'labelled') % ${one} = 0`,
  })
}

/** Looks at the running queries until it is told to stop, and says how much one used at most. */
async function watchPeak(clickhouse: Clickhouse, isDone: () => boolean): Promise<number> {
  let most = 0
  while (!isDone()) {
    const result = await clickhouse.query({
      query: 'select toFloat64(max(peak_memory_usage)) / 1048576 from system.processes',
      format: 'JSONCompactEachRow',
    })
    const [row] = await result.json<[number]>()
    most = Math.max(most, row![0])
    await setTimeout(100)
  }
  return most
}
