/**
 * Totals under concurrent writes. One writer raises alerts as the scorer does and changes
 * dispositions as operators do, step after step; a model knows every count after each step. A total
 * of the api must be correct for a step that it can have read. The store is also compared with
 * `count(*)` in one snapshot.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Decision, type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { listAlerts } from '#shared/io/alerts/list-alerts.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { Check, Figure } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import {
  type AlertRequest,
  createRandom,
  type Random,
  toCountSql,
  toStoreQuery,
} from './alert-cases.ts'
import type { Page, Rig } from './alert-rig.ts'
import { bigTenantId, smallTenants } from './alert-rows.ts'

const raisedAtOnce = 100
const judgedAtOnce = 10
const knownMax = 2_000
const snapshotRounds = 2
const warmUpMs = 1_000

/** Counts by `DISPOSITION DECISION`. */
type Counts = Record<string, number>
/** The changes of one step of the writer, and when it can have been committed. */
type Step = { startMs: number; endMs: number; changes: Counts }
type Answer = {
  request: AlertRequest
  startMs: number
  endMs: number
  page: Page
  baselineMs: number
}
type RiskFeatures = { alertId: string; decision: Decision; disposition: Disposition }

type Pour = { steps: Step[]; raised: number; judged: number; done: Promise<void> }

export async function pourAlerts(rig: Rig): Promise<{ checks: Check[]; figures: Figure[] }> {
  const random = createRandom(rig.alerts)
  const before = await readCounts(rig)
  const since = new Date().toISOString()
  const stopping = new AbortController()
  const pour = startPour(rig, random, stopping.signal)
  await sleep(warmUpMs)
  const answers: Answer[] = []
  const reading = new AbortController()
  const readers = [1, 2].map(() => readPages(rig, since, answers, reading.signal))
  const snapshots = await checkSnapshots(rig)
  reading.abort()
  await Promise.all(readers)
  stopping.abort()
  await pour.done
  const wrong = answers.filter((answer) => !isPossible(answer, before, pour.steps))
  const torn = answers.filter(({ request, page }) => {
    const isFirst = Object.keys(request).length === 0
    return isFirst && page.data[0]?.seq !== page.total
  })
  return {
    checks: [
      {
        name: 'total is exact while alerts pour in and are judged',
        ok: wrong.length === 0 && answers.length > 0 && pour.raised > 0 && pour.judged > 0,
        detail:
          `${wrong.length} of ${answers.length} answers differ from every state they can have ` +
          `seen; ${pour.raised} alerts raised, ${pour.judged} judged meanwhile`,
      },
      {
        name: 'page and total are of one snapshot while alerts pour in',
        ok: torn.length === 0,
        detail: `${torn.length} first pages whose newest seq is not their total`,
      },
      snapshots,
      await checkCounters(rig),
    ],
    figures: [toPourFigure(answers)],
  }
}

function startPour(rig: Rig, random: Random, signal: AbortSignal): Pour {
  const pour: Pour = { steps: [], raised: 0, judged: 0, done: Promise.resolve() }
  const store = createAlertStore(rig.postgres)
  const known: RiskFeatures[] = []
  const step = async (work: () => Promise<Counts>): Promise<void> => {
    const startMs = performance.now()
    const one: Step = { startMs, endMs: Infinity, changes: {} }
    pour.steps.push(one)
    one.changes = await work()
    one.endMs = performance.now()
  }
  const pourOn = async (): Promise<void> => {
    for (let round = 0; !signal.aborted; round++) {
      await step(async () => {
        const candidates = makeRound(random, round)
        await raiseAlerts(rig.postgres, candidates, Date.now)
        const ours = candidates.filter(({ tenantId }) => tenantId === bigTenantId)
        pour.raised += ours.length
        const changes: Counts = {}
        for (const { alertId, action } of ours) {
          changes[`OPEN ${action}`] = (changes[`OPEN ${action}`] ?? 0) + 1
          if (known.length < knownMax) {
            known.push({ alertId, decision: action, disposition: 'OPEN' })
          }
        }
        return changes
      })
      for (let n = 0; n < judgedAtOnce; n++) {
        const one = known[Math.floor(random() * known.length)]!
        const disposition = dispositions[Math.floor(random() * dispositions.length)]!
        if (disposition === one.disposition) continue
        await step(async () => {
          const change = { tenantId: bigTenantId, alertId: one.alertId, disposition }
          await store.setDisposition({ ...change, note: null, actor: 'bench' })
          pour.judged++
          const { disposition: earlier, decision } = one
          one.disposition = disposition
          return { [`${earlier} ${decision}`]: -1, [`${disposition} ${decision}`]: 1 }
        })
      }
    }
  }
  pour.done = pourOn()
  return pour
}

/** Most alerts are the big tenant's, with one new session per alert. */
function makeRound(random: Random, round: number) {
  return Array.from({ length: raisedAtOnce }, (_, n) =>
    makeAlertCandidate({
      tenantId: n % 5 > 0 ? bigTenantId : `small-${Math.floor(random() * smallTenants)}`,
      sessionId: `poured-${round}-${n}`,
      deviceId: `device-${Math.floor(random() * 1_000)}`,
      action: random() < 0.35 ? 'BLOCK' : 'REVIEW',
    }),
  )
}

/** Requests lists that the model can count, in rotation, until the signal aborts. */
async function readPages(
  rig: Rig,
  since: string,
  answers: Answer[],
  signal: AbortSignal,
): Promise<void> {
  const requests: AlertRequest[] = [
    {},
    { disposition: 'OPEN' },
    { disposition: 'CONFIRMED', decision: 'BLOCK' },
    { decision: 'REVIEW' },
    { from: since },
    { from: since, disposition: 'REVIEWED' },
  ]
  for (let n = 0; !signal.aborted; n++) {
    const request = requests[n % requests.length]!
    const baselineStartMs = performance.now()
    await rig.baseline({})
    const startMs = performance.now()
    const page = await rig.list(request)
    answers.push({
      request,
      startMs,
      endMs: performance.now(),
      page,
      baselineMs: startMs - baselineStartMs,
    })
  }
}

/** Whether the total is that of a state between the request and its answer. */
function isPossible(
  { request, startMs, endMs, page }: Answer,
  before: Counts,
  steps: Step[],
): boolean {
  // Every alert written during the run is newer than `from`, every other is older.
  const counts: Counts = request.from === undefined ? { ...before } : {}
  for (let done = 0; ; done++) {
    const next = steps[done]
    // Later states count once the next step can have been committed before the end of the answer.
    const mayHold = next === undefined || next.endMs >= startMs
    if (mayHold && countOf(counts, request) === page.total) return true
    if (next === undefined || next.startMs > endMs) return false
    for (const [key, change] of Object.entries(next.changes)) {
      counts[key] = (counts[key] ?? 0) + change
    }
  }
}

function countOf(counts: Counts, { disposition, decision }: AlertRequest): number {
  return Object.entries(counts)
    .filter(([key]) => {
      const [is, decided] = key.split(' ')
      return (
        (disposition === undefined || is === disposition) &&
        (decision === undefined || decided === decision)
      )
    })
    .reduce((sum, [, n]) => sum + n, 0)
}

async function readCounts({ postgres }: Rig): Promise<Counts> {
  const { rows } = await postgres.query<{ key: string; n: number }>(
    `select disposition || ' ' || action as key, count(*) as n
     from alerts where tenant_id = $1 group by 1`,
    [bigTenantId],
  )
  return Object.fromEntries(rows.map(({ key, n }) => [key, n]))
}

/** The store's own statement and `count(*)` in one snapshot each, for every case. */
async function checkSnapshots({ postgres, cases }: Rig): Promise<Check> {
  let [checked, wrong] = [0, 0]
  for (let round = 0; round < snapshotRounds; round++) {
    for (const { draw } of cases) {
      const request = draw()
      await postgres.transaction(async (tx) => {
        await tx.query('set transaction isolation level repeatable read')
        const { total } = await listAlerts(tx, toStoreQuery(request))
        const { rows } = await tx.query<{ n: number }>(toCountSql(request))
        checked++
        if (total !== rows[0]!.n) wrong++
      })
    }
  }
  return {
    name: 'total is count(*) in one snapshot while alerts pour in',
    ok: wrong === 0,
    detail: `${wrong} of ${checked} snapshots differ`,
  }
}

/** Compares every counter of every tenant with its alerts, after the last write. */
async function checkCounters({ postgres }: Rig): Promise<Check> {
  const { rows } = await postgres.query<{ n: number }>(
    `with counted as (
       select tenant_id, date_bin('1 hour', created_at, 'epoch') as hour, disposition,
         action as decision, count(*) as n
       from alerts group by 1, 2, 3, 4
     ), by_day as (
       select tenant_id, (hour at time zone 'UTC')::date as day, disposition, decision,
         sum(n) as n
       from counted group by 1, 2, 3, 4
     ), hours as (
       select 1 from counted
       full join (select * from alert_counts_by_hour where alert_count <> 0) as kept
         using (tenant_id, hour, disposition, decision)
       where counted.n is distinct from kept.alert_count
     ), days as (
       select 1 from by_day
       full join (select * from alert_counts_by_day where alert_count <> 0) as kept
         using (tenant_id, day, disposition, decision)
       where by_day.n is distinct from kept.alert_count
     )
     select (select count(*) from hours) + (select count(*) from days) as n`,
  )
  return {
    name: 'every counter of every tenant is exact after it',
    ok: rows[0]!.n === 0,
    detail: `${rows[0]!.n} counters differ`,
  }
}

function toPourFigure(answers: Answer[]): Figure {
  const list = percentile(
    answers.map(({ startMs, endMs }) => endMs - startMs),
    0.5,
  )
  const baseline = percentile(
    answers.map(({ baselineMs }) => baselineMs),
    0.5,
  )
  return {
    name: 'while alerts pour in, p50',
    unit: 'ms',
    value: toSpread([list]),
    baseline: { name: 'a bare select', value: toSpread([baseline]) },
    ratio: toRatios([list], [baseline]),
  }
}
