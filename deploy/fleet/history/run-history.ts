/**
 * `di fleet --history`: past days in a new tenant of the running local stack. Its phones are
 * planned, its events pass through the edge's and the scorer's own code with the clock of their
 * time, and a model of analysts sets dispositions. It writes to the stack's own databases with the
 * credentials of its owner, so nothing else can be addressed.
 */
import { createSecretKey, hkdfSync } from 'node:crypto'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import type { ShadowVersion } from '#shared/core/policies/shadow.ts'
import { addressKeyBytes } from '#shared/core/tenants/client-address.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { forgetHourlyCounts } from '#shared/io/analytics/counts/hourly-count-store.ts'
import { requestPrevalenceCheck } from '#shared/io/analytics/prevalence-spike-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { dateShadow, dateTenant } from '#shared/io/history/simulated-history-store.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { insertShadowVersion, listShadowVersions } from '#shared/io/policies/shadow-policy-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { withOldActivityKept } from '#shared/io/velocity/activity-merges-store.ts'
import { type FleetContext, FleetError, type LocalStack } from '../fleet-context.ts'
import { createRandom } from '../phones/random.ts'
import { acceptVisits, type EdgeTenant } from './history-edge.ts'
import { createHistoryInstalls } from './history-installs.ts'
import { makeLabels, storeLabels } from './history-labels.ts'
import { judgeAlert } from './history-outcomes.ts'
import { type HistorySpan, makeHistory, type Stories } from './history-plan.ts'
import { inside, type RaisedVisit, scoreVisits, toAlertKey } from './history-scorer.ts'

export type HistoryOptions = {
  /** Full days before today; the current day so far is added. */
  days: number
  devices: number
  seed: number
  /** The slug of the new tenant. */
  tenant: string
}

export type HistorySummary = {
  tenant_id: string
  seed: number
  days: number
  devices: number
  from: string
  to: string
  events: number
  /** Events whose bytes were sent again, long after. */
  replays: number
  alerts: number
  dispositions: number
  labels: number
  deliveries: { delivered: number; failed: number }
  console_url: string
}

export type HistoryDeps = {
  context: FleetContext
  nowMs: () => number
  /** Aborted to stop the history where it is. */
  stop: AbortSignal
  /** Shows the number of decided events and of all events. */
  onProgress: (events: number, all: number) => void
}

/** No event is newer, so that the last alerts have been raised and delivered. */
const quietMs = 120_000
/** The hourly search for spikes finds a release of this age before the end. */
const badReleaseAgeMs = 22 * hourMs
/**
 * Up to this length the bad release is the last story of the history, otherwise one in its middle.
 */
const shortDays = 30
const analysts = ['ann@example.com', 'bob@example.com', 'chloe@example.com']
/** The webhook is paused, so nothing is ever sent there. */
const webhookUrl = 'http://127.0.0.1:9999/risk-alerts'
const dispositionsPerTransaction = 100

/**
 * Creates the history.
 * @throws FleetError when there is no local stack with embedded servers, the tenant exists, or it
 *   is stopped
 */
export async function runHistory(
  deps: HistoryDeps,
  options: HistoryOptions,
): Promise<HistorySummary> {
  const { context } = deps
  const stack = requireLocalStack(context)
  const { days, devices, seed, tenant: tenantId } = options
  const endMs = deps.nowMs() - quietMs
  const span = toSpan(days, endMs)
  const created = (await context.adminFetch('POST', '/tenants', {
    tenant_id: tenantId,
    name: 'Simulated history',
    environment: 'sandbox',
    webhook_url: webhookUrl,
  })) as { hmac_secret: string }
  await context.adminFetch('POST', `/tenants/${tenantId}/webhook/pause`)
  // Failures are thrown, and stdout is for the summary.
  const log = createLog('fleet', 'silent')
  const postgres = createPostgres(stack.postgres, { role: 'fleet', log, statementTimeoutMs: 0 })
  const clickhouse = createClickhouse(stack.clickhouse, {
    name: 'fleet',
    shardUrls: (stack.clickhouse_shards ?? []).map((url) => [url]),
  })
  try {
    const shadows = await prepareTenant(postgres, tenantId, span)
    const policy = (await createCurrentPolicyStore(postgres).findCurrentPolicy(tenantId))!
    const edge: EdgeTenant = {
      tenantId,
      hmacSecret: created.hmac_secret,
      policy: policy.policy,
      policyVersion: policy.version,
      policyHash: policy.policyHash,
      ...(await readNetwork(stack.network_data, created.hmac_secret)),
    }
    const model = makeHistory(seed, devices, span)
    const installs = createHistoryInstalls({ seed, tenantId })
    const visits = acceptVisits(model, edge, { startMs: span.startMs, endMs }, installs)
    const onProgress = (events: number) => deps.onProgress(events, visits.length)
    const fail = (text: string) => {
      const instead = `The tenant ${tenantId} has a part of it; --tenant names another one.`
      throw new FleetError(`The history is not complete: ${text}. ${instead}`)
    }
    const checkStop = () => {
      if (deps.stop.aborted) fail('it was stopped')
    }
    const feedback = { onWarning: fail, onProgress, checkStop }
    const scoring = { tenantId, seed, clickhouse, postgres, shadows, ...feedback }
    // Risk features of an event cover the 30 days before it.
    const raised = await withOldActivityKept(clickhouse, () => scoreVisits(visits, scoring))
    // Its hours may be counted already, as of all tenants without events.
    await forgetHourlyCounts(clickhouse, tenantId)
    const judging = { seed, endMs, stories: model.stories, checkStop }
    const dispositions = await judgeAll(postgres, raised, judging)
    const labels = makeLabels(visits, { tenantId, seed, endMs })
    await storeLabels(postgres, tenantId, labels)
    // A new release is at fault in the history: its spike shows at once.
    await requestPrevalenceCheck(clickhouse)
    const replays = visits.filter(({ isReplay }) => isReplay).length
    const failed = raised.filter((one) => one.isUndelivered).length
    return {
      tenant_id: tenantId,
      seed,
      days,
      devices,
      from: new Date(span.startMs).toISOString(),
      to: new Date(endMs).toISOString(),
      events: visits.length - replays,
      replays,
      alerts: raised.length,
      dispositions,
      labels: labels.length,
      deliveries: { delivered: raised.length - failed, failed },
      console_url: `${stack.console}/t/${tenantId}/overview`,
    }
  } finally {
    await Promise.all([postgres.close(), clickhouse.close()])
  }
}

/** @throws FleetError when its servers are not the embedded ones, or the console is another one */
function requireLocalStack({ env, findStack }: FleetContext): LocalStack {
  const stack = findStack()
  if (stack === null) {
    throw new FleetError('A history is made in the running local stack: start it with `npm start`.')
  }
  const { postgres, clickhouse } = stack.pids
  if (postgres === undefined || clickhouse === undefined) {
    throw new FleetError('A history is made with the embedded servers of the local stack only.')
  }
  const elsewhere = env.CONSOLE_URL && env.CONSOLE_URL.replace(/\/+$/, '') !== stack.console
  if (elsewhere) {
    throw new FleetError('CONSOLE_URL is not the console of the local stack.')
  }
  return stack
}

/**
 * The demo's network data, as an edge reads it. The tenant's own key of addresses never leaves the
 * service, so the history hashes under another one: its hashes equal each other alone.
 */
async function readNetwork(
  folder: string | undefined,
  hmacSecret: string,
): Promise<Pick<EdgeTenant, 'network'>> {
  if (folder === undefined) return {}
  const data = createNetworkData({
    folder,
    measuresDocumentation: true,
    log: createLog('fleet', 'silent'),
    metrics: createMetrics('fleet'),
    wallMs: Date.now,
  })
  await data.look()
  const sources = data.sources()
  const key = hkdfSync('sha256', hmacSecret, '', 'addresses of the history', addressKeyBytes)
  const addressKey = createSecretKey(Buffer.from(key))
  return sources === null ? {} : { network: { sources, addressKey } }
}

function toSpan(days: number, endMs: number): HistorySpan {
  const startMs = Math.floor(endMs / dayMs) * dayMs - days * dayMs
  const badReleaseMs = endMs - badReleaseAgeMs
  return { startMs, days, visitDays: days + 1, ...(days <= shortDays ? { badReleaseMs } : {}) }
}

/**
 * Dates the tenant before its first event, and sets a shadow policy after a third of the events.
 */
async function prepareTenant(
  postgres: Postgres,
  tenantId: string,
  { startMs, days }: HistorySpan,
): Promise<readonly ShadowVersion[]> {
  const policy = presets.strict
  const shadow = { hash: toPolicyHash(policy), text: JSON.stringify(policy) }
  await postgres.transaction(async (tx) => {
    await dateTenant(tx, tenantId, startMs - hourMs)
    await insertShadowVersion(tx, { tenantId, policy: shadow, createdBy: analysts[0]! })
    await dateShadow(tx, tenantId, startMs + (days * dayMs) / 3)
  })
  return (await listShadowVersions(postgres)).get(tenantId) ?? []
}

type Judging = { seed: number; endMs: number; stories: Stories; checkStop: () => void }

/** @returns the number of dispositions that were set; later ones are still to come */
async function judgeAll(
  postgres: Postgres,
  raised: readonly RaisedVisit[],
  { seed, endMs, stories, checkStop }: Judging,
): Promise<number> {
  const verdicts = raised
    .map(({ candidate, visit, createdAtMs }) => {
      const random = createRandom(seed, `verdict:${toAlertKey(candidate)}`)
      const of = { phone: visit.phone, detected: signalsOf(candidate) }
      const { to, atMs } = judgeAlert(of, createdAtMs, stories, random)
      return { alertId: candidate.alertId, to, atMs, actor: random.pick(analysts) }
    })
    .flatMap(({ atMs, ...one }) => (atMs === null || atMs >= endMs ? [] : [{ ...one, atMs }]))
    .sort((a, b) => a.atMs - b.atMs)
  for (let at = 0; at < verdicts.length; at += dispositionsPerTransaction) {
    checkStop()
    const some = verdicts.slice(at, at + dispositionsPerTransaction)
    await postgres.transaction(async (tx) => {
      for (const { to: disposition, ...one } of some) {
        await setDisposition(inside(tx), { ...one, disposition, note: null })
      }
    })
  }
  return verdicts.length
}

const signalsOf = ({ reasons }: AlertCandidate): string[] =>
  reasons.flatMap(({ evidence }) => (evidence.signals as string[] | undefined) ?? [])
