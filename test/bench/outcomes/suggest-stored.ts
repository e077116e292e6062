/**
 * `npm run bench -- suggest-stored [--events 10000000] [--labels 50000]`: a suggestion over a stored
 * history, as the console makes it: ClickHouse reads sessions, decisions and labels, and this
 * process computes. What labels say is drawn by the score, since here only the work counts. Each
 * query is listed with what it read. Filling ten million events takes minutes.
 */
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  onlyWeights,
  type SuggestOptions,
  suggestPolicy,
} from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readOutcomeTable } from '#shared/io/policies/outcome-table-store.ts'
import { print } from '../../faults/support/drill.ts'
import { fillHistory, historyTenant } from '../../support/scoring/backtest-history.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { publishReport, readClickhouseVersion, single } from '../report.ts'

/** What the page of outcomes asks for. */
const secondsMax = 60
const mibMax = 1024

/** One event in so many was decided otherwise than the edge scored it. */
const decidedOf = 10

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '10000000' },
      labels: { type: 'string', default: '50000' },
    },
  })
  const [events, labels] = [Number(values.events), Number(values.labels)]
  const server = await startClickhouse()
  await migrateClickhouse(server.url)
  const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 600_000 })
  try {
    const filled = await fillHistory(clickhouse, events)
    await insertDecisions(clickhouse)
    await insertSessions(clickhouse)
    await insertLabels(clickhouse, { sessions: filled.events / 4, labels })
    let isRead = false
    const peak = watchPeak(clickhouse, () => isRead)
    const queries: QueryCost[] = []
    let startedAt = performance.now()
    const range = { tenantId: historyTenant, sinceMs: 0 }
    const reading = readOutcomeTable(toWatched(clickhouse, queries), {
      range,
      policy: defaultPolicy,
    })
    let step = await reading.next()
    while (!step.done) step = await reading.next()
    const readSeconds = (performance.now() - startedAt) / 1000
    isRead = true
    const { table, sessions, leftOut } = step.value!
    startedAt = performance.now()
    const options: SuggestOptions = { freed: onlyWeights, seed: 1 }
    const answer = suggestPolicy(defaultPolicy, table, options)
    const suggestSeconds = (performance.now() - startedAt) / 1000
    for (const { name, seconds, rows, mib } of queries) {
      print(
        `${seconds.toFixed(2).padStart(7)} s ${mib.toFixed(0).padStart(6)} MiB  ${rows} rows: ${name}`,
      )
    }
    const labelled = table.rows.reduce((sum, row) => sum + row.fraud + row.legitimate, 0)
    publishReport({
      part: 'suggest-stored',
      command: `npm run bench -- suggest-stored --events ${events} --labels ${labels}`,
      versions: { clickhouse: await readClickhouseVersion(clickhouse) },
      durability: 'nothing is written',
      figures: [
        single(
          `reading and suggesting from ${filled.events} stored events`,
          's',
          readSeconds + suggestSeconds,
          secondsMax,
        ),
        single('the part that ClickHouse reads', 's', readSeconds),
        single('memory of its largest query', 'MiB', await peak, mibMax),
        single(
          'memory of the process at its most',
          'MiB',
          process.resourceUsage().maxRSS / 1024,
          mibMax,
        ),
      ],
      checks: [
        {
          name: 'a policy is suggested',
          ok: 'suggestion' in answer,
          detail: `${table.rows.length} rows of ${table.events.length} kinds of events`,
        },
        {
          name: 'every session is read',
          ok: leftOut < sessions / 100 && labelled > labels / 2,
          detail: `${sessions} sessions, ${leftOut} left out, ${labelled} labelled`,
        },
      ],
    })
  } finally {
    await clickhouse.close()
    await server.stop()
  }
}

type QueryCost = { name: string; seconds: number; rows: number; mib: number }

const names: [part: string, name: string][] = [
  ['quantileExact', 'when the newer period begins'],
  ['groupArraySample', 'slices of devices'],
  ['from signal_patterns', 'patterns'],
  ["outcome = 'fraud'", 'labelled sessions'],
  ['as kinds', 'a slice of sessions'],
]

/** A client whose queries leave what they cost in a list. */
function toWatched(clickhouse: Clickhouse, costs: QueryCost[]): Clickhouse {
  const query: typeof clickhouse.query = async (params) => {
    const startedAt = performance.now()
    const settings = { ...params.clickhouse_settings, wait_end_of_query: 1 as const }
    const result = await clickhouse.query({ ...params, clickhouse_settings: settings })
    const header = result.response_headers['x-clickhouse-summary']
    const summary = JSON.parse(String(header ?? '{}')) as Record<string, string>
    costs.push({
      name: names.find(([part]) => params.query.includes(part))?.[1] ?? 'span and contexts',
      seconds: (performance.now() - startedAt) / 1000,
      rows: Number(summary.read_rows ?? 0),
      mib: Number(summary.memory_usage ?? 0) / 1024 ** 2,
    })
    return result
  }
  return new Proxy(clickhouse, {
    get: (target, name) => (name === 'query' ? query : Reflect.get(target, name)),
  })
}

/** The view that fills them is off while the history is made. */
const insertSessions = (clickhouse: Clickhouse) =>
  clickhouse.command({
    query: `insert into sessions
        (tenant_id, device_id, session_id, started_at, last_seen_at, users, risk)
      select tenant_id, device_id, session_id, min(received_at), max(received_at),
        [concat('user-', substring(session_id, 1, 8))],
        max((toUInt16(8 * rasp_score + 2 * toUInt8(rasp_action)), cast([] as Array(String))))
      from telemetry group by tenant_id, device_id, session_id`,
  })

/** Users of the device raise the score, as a scorer says it. */
const insertDecisions = (clickhouse: Clickhouse) =>
  clickhouse.command({
    query: `insert into decisions (tenant_id, device_id, session_id, event_id, stream_offset,
        received_at, user_id, account_id, rasp_score, risk_score, action, flags, reasons)
      select tenant_id, device_id, session_id, event_id, stream_offset, received_at, '', '',
        rasp_score, least(100, rasp_score + 20), 'REVIEW', ['MANY_USERS_PER_DEVICE'],
        concat('[{"code":"MANY_USERS_PER_DEVICE","weight":20,"evidence":{"metric":',
          '"users_per_device","count":', toString(4 + sipHash64(event_id, 'count') % 9),
          ',"threshold":3,"window":"24h"}}]')
      from telemetry where sipHash64(event_id, 'decided') % ${decidedOf} = 0`,
  })

async function insertLabels(
  clickhouse: Clickhouse,
  { sessions, labels }: { sessions: number; labels: number },
): Promise<void> {
  const one = Math.max(1, Math.round(sessions / labels))
  await clickhouse.command({
    query: `insert into labels_replica (tenant_id, created_at, label_id, seq, subject_kind,
        subject_id, label, occurred_at, covered_days, amount, currency, round)
      select tenant_id, min(received_at), concat('lbl_', session_id), rowNumberInAllBlocks() + 1,
        'session', session_id,
        if(sipHash64(session_id, 'fraud') % 100 < 5 + max(rasp_score), 'fraud', 'legitimate'),
        min(received_at), 30, sipHash64(session_id, 'amount') % 900, 'EUR', 1
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
