/** What a local stack has done so far, as its stores and processes count it themselves. */

import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { readMetric } from '../../support/process/read-metric.ts'
import type { StackFacts } from '../../support/process/stack.ts'
import { readPairs } from '../read-pairs.ts'

/** Totals by name. */
export type Counts = Record<string, number>

/** What an event comes to, in this order; in any time their numbers differ by what waits. */
export const stages = ['accepted', 'stored', 'decided'] as const
export type Stage = (typeof stages)[number]

export type Work = {
  /** Events of each stage: accepted by each edge, stored and decided by each scorer. */
  events: Record<Stage, number[]>
  /** Rows that each ClickHouse engine wrote. */
  written: number[]
  /** Messages of each telemetry stream. */
  messages: number[]
  /** The work of each stage. */
  counts: Record<Stage, Counts>
}

export type WorkReader = {
  read: () => Promise<Work>
  /** The decided events alone, which makes no work for the stores. */
  readDecided: () => Promise<number[]>
  close: () => Promise<void>
}

/** Counters of ClickHouse and their names in the report. Rows written include those of views. */
const engineCounters: Record<string, string> = {
  InsertQuery: 'ClickHouse inserts',
  SelectQuery: 'ClickHouse selects',
  InsertedRows: 'ClickHouse rows written',
  InsertedBytes: 'ClickHouse bytes written, uncompressed',
  MergedRows: 'ClickHouse rows merged',
  SelectedRows: 'ClickHouse rows read',
  SelectedMarks: 'ClickHouse granules read',
}

/** @param internalUrls of all processes of these kinds */
export async function openWorkReader(
  stack: StackFacts,
  internalUrls: Record<'ingest' | 'scorer' | 'delivery', readonly string[]>,
): Promise<WorkReader> {
  const log = createLog('bench', 'silent')
  const engineUrls = stack.clickhouse_shards ?? [stack.clickhouse]
  const engines = engineUrls.map((url) => createClickhouse(url, { name: 'bench' }))
  const postgres = createPostgres(stack.postgres, { role: 'bench', log })
  const nats = await connectNats(stack.nats, 'bench', log)
  const names = Object.keys(engineCounters)
    .map((name) => `'${name}'`)
    .join(', ')
  const readEngines = () =>
    Promise.all(
      engines.map((engine) =>
        readPairs(engine, `select event, value from system.events where event in (${names})`),
      ),
    )
  const readStreams = async () => {
    const streams = await nats.manager.streams.list().next()
    const telemetry = streams.filter(({ config }) => config.name.startsWith(telemetryStream))
    const messages = telemetry.map(({ state }) => state.last_seq)
    const counts = {
      'JetStream messages': sumOf(streams.map(({ state }) => state.last_seq)),
      'JetStream telemetry messages': sumOf(messages),
      'JetStream telemetry bytes': sumOf(telemetry.map(({ state }) => state.bytes)),
    }
    return { messages, counts }
  }
  const readPostgres = async () => {
    const { rows } = await postgres.query<Record<string, string>>(
      `select xact_commit as "Postgres transactions",
         tup_inserted + tup_updated + tup_deleted as "Postgres rows written",
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as "Postgres bytes of log",
         (select count(*) from alerts) as "alerts"
       from pg_stat_database where datname = current_database()`,
    )
    return Object.fromEntries(Object.entries(rows[0]!).map(([name, text]) => [name, Number(text)]))
  }
  const readAll = (urls: readonly string[], name: string) =>
    Promise.all(urls.map((url) => readMetric(url, name)))
  const readDecided = () => readAll(internalUrls.scorer, 'di_events_scored_total')
  return {
    readDecided,
    read: async () => {
      const [accepted, stored, batches, decided] = await Promise.all([
        readAll(internalUrls.ingest, 'di_ingest_accepted_total'),
        readAll(internalUrls.scorer, 'di_insert_rows_sum'),
        readAll(internalUrls.scorer, 'di_insert_rows_count'),
        readDecided(),
      ])
      const [byEngine, ofStreams, ofPostgres, webhooks] = await Promise.all([
        readEngines(),
        readStreams(),
        readPostgres(),
        readAll(internalUrls.delivery, 'di_delivery_attempts_total'),
      ])
      const ofEngines = Object.entries(engineCounters).map(([counter, name]) => [
        name,
        sumOf(byEngine.map((one) => one[counter] ?? 0)),
      ])
      return {
        events: { accepted, stored, decided },
        written: byEngine.map((one) => one.InsertedRows ?? 0),
        messages: ofStreams.messages,
        counts: {
          accepted: ofStreams.counts,
          stored: { 'batches of scorers': sumOf(batches), ...Object.fromEntries(ofEngines) },
          decided: { ...ofPostgres, webhooks: sumOf(webhooks) },
        },
      }
    },
    close: async () => {
      await Promise.all([...engines, nats, postgres].map((one) => one.close()))
    },
  }
}

export const sumOf = (values: readonly number[]): number =>
  values.reduce((total, one) => total + one, 0)
