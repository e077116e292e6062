/**
 * The overview of a tenant: a period beside the one before it. What is in Postgres is always there;
 * what ClickHouse cannot answer is null.
 */
import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import { dayMs, hourMs, toIso } from '#shared/core/base/instants.ts'
import {
  overviewDaysMax,
  overviewFlagsMax,
  overviewVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { countAlertsByStep } from '#shared/io/analytics/alert-steps.ts'
import type { OverviewSpan, OverviewStore } from '#shared/io/analytics/overview-store.ts'
import { countDeliveriesByState } from '#shared/io/deliveries/count-deliveries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import type { TenantView } from '#shared/io/tenants/tenant-view.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { toQuerySpan } from '../http/query-span.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { toMovers } from './movers.ts'
import { readOpenCases } from './open-cases.ts'
import { toBeforeMs, toLine, toStepMs, toStepTimes } from './overview-lines.ts'
import { type Overview, overviewParts, overviewQuery, overviewSchema } from './overview-schemas.ts'

export type PeriodOverviewDeps = {
  postgres: Postgres
  overview: OverviewStore
  readReconciliation: ReconciliationStore['readReconciliation']
  wallMs: () => number
}

/** Adds the route. */
export function addPeriodOverviewRoute(app: ConsoleApp, deps: PeriodOverviewDeps): void {
  app.get(
    '/tenants/:tenant_id/overview',
    {
      schema: {
        operationId: 'findOverview',
        tags: ['Analytics'],
        summary: 'A period beside the one before it: events, alerts, flags, versions, webhook',
        params: tenantParams,
        querystring: overviewQuery,
        response: { 200: overviewSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query, log, principal }) => {
      const tenant = await requireTenant(deps.postgres, tenantId)
      const most = { nowMs: deps.wallMs(), daysMax: overviewDaysMax }
      const { fromMs, toMs } = toQuerySpan(query, most)
      const beforeMs = toBeforeMs({ fromMs, toMs })
      const span: OverviewSpan = { tenantId, beforeMs, fromMs, toMs }
      const orNull = <T>(what: Promise<T>): Promise<T | null> =>
        what.catch((error: unknown) => {
          log.warn({ err: error, tenant_id: tenantId }, 'a part of the overview cannot be read')
          return null
        })
      const { parts = overviewParts } = query
      const ifAsked = <T>(part: (typeof overviewParts)[number], read: () => Promise<T>) =>
        parts.includes(part) ? orNull(read()) : null
      const stepMs = toStepMs(span)
      const caller = actorOf(principal)
      const [telemetry, outcomes, reconciliation, alerts, webhook, cases] = await Promise.all([
        ifAsked('telemetry', () => readTelemetry(deps.overview, span, stepMs)),
        ifAsked('outcomes', () => deps.overview.readOutcomes(span)),
        ifAsked('reconciliation', () => readAgreement(deps, span)),
        readAlerts(deps.postgres, span, { stepMs, nowMs: most.nowMs }),
        readWebhook(deps.postgres, tenant, span),
        readOpenCases(deps.postgres, { tenantId, caller }, toAges(most.nowMs)),
      ])
      return {
        from: toIso(span.fromMs),
        to: toIso(span.toMs),
        before_from: toIso(span.beforeMs),
        step_seconds: stepMs / 1_000,
        times: toStepTimes(span, stepMs).map(toIso),
        telemetry,
        outcomes,
        alerts,
        cases,
        webhook,
        reconciliation,
      }
    },
  )
}

async function readTelemetry(
  store: OverviewStore,
  span: OverviewSpan,
  stepMs: number,
): Promise<NonNullable<Overview['telemetry']>> {
  const options = { versionsMax: overviewVersionsMax, stepMs }
  const [{ now, before, lastEventMs, versions, steps }, flags, signals] = await Promise.all([
    store.readCounts(span, options),
    store.listFlags(span, overviewFlagsMax),
    store.listSignals(span),
  ])
  const lineOf = (name: 'events' | 'review' | 'block') =>
    toLine(
      steps.map((step) => ({ ...step, value: step[name] })),
      span,
      stepMs,
    )
  const hasEvents = now.events + before.events > 0 || (await store.hasEvents(span.tenantId))
  const pairOf = (name: keyof typeof now) => ({ now: now[name], before: before[name] })
  return {
    events: pairOf('events'),
    devices: pairOf('devices'),
    sessions: pairOf('sessions'),
    actions: { ALLOW: pairOf('allow'), REVIEW: pairOf('review'), BLOCK: pairOf('block') },
    connections: {
      measured: pairOf('measured'),
      anonymous: pairOf('anonymous'),
      hosting: pairOf('hosting'),
      countries: pairOf('countries'),
    },
    top_flags: flags,
    sdk_versions: versions.map(({ platform, sdkVersion, events, devices }) => ({
      platform,
      sdk_version: sdkVersion,
      events,
      devices,
    })),
    lines: { events: lineOf('events'), REVIEW: lineOf('review'), BLOCK: lineOf('block') },
    movers: toMovers(signals, pairOf('devices')),
    has_events: hasEvents,
    last_event_at: lastEventMs === null ? null : toIso(lastEventMs),
  }
}

/** Ages of open alerts and cases: up to an hour, a day, a week, and more. */
function toAges(nowMs: number): { fromMs: number | null; toMs: number | null }[] {
  const bounds = [hourMs, dayMs, 7 * dayMs].map((ageMs) => nowMs - ageMs)
  return [...bounds, null].map((fromMs, at) => ({ fromMs, toMs: bounds[at - 1] ?? null }))
}

async function readAlerts(
  postgres: Postgres,
  span: OverviewSpan,
  { stepMs, nowMs }: { stepMs: number; nowMs: number },
): Promise<Overview['alerts']> {
  const { listAlerts } = createAlertStore(postgres)
  const count = async (filter: AlertFilter): Promise<number> => {
    const query = { tenantId: span.tenantId, filter, limit: 1, after: null }
    return (await listAlerts(query)).total
  }
  const pairOf = async (filter: AlertFilter) => {
    const [now, before] = await Promise.all([
      count({ ...filter, from: span.fromMs, to: span.toMs }),
      count({ ...filter, from: span.beforeMs, to: span.fromMs }),
    ])
    return { now, before }
  }
  const { tenantId, beforeMs, fromMs, toMs } = span
  const stepsOf = async (isNow: boolean, from: number, to: number) => {
    const query = { tenantId, fromMs: from, toMs: to, stepMs }
    const steps = await countAlertsByStep(postgres, query)
    return steps.map(({ atMs, alerts }) => ({ isNow, atMs, value: alerts }))
  }
  const countAge = async ({ fromMs: from, toMs: to }: ReturnType<typeof toAges>[number]) => ({
    from: from === null ? null : toIso(from),
    to: to === null ? null : toIso(to),
    alerts: await count({
      disposition: ['OPEN'],
      ...(from === null ? {} : { from }),
      ...(to === null ? {} : { to }),
    }),
  })
  const openByAge = await Promise.all(toAges(nowMs).map(countAge))
  const steps = await Promise.all([stepsOf(true, fromMs, toMs), stepsOf(false, beforeMs, fromMs)])
  const [review, block, open] = await Promise.all([
    pairOf({ decision: ['REVIEW'] }),
    pairOf({ decision: ['BLOCK'] }),
    count({ disposition: ['OPEN'] }),
  ])
  const raised = { now: review.now + block.now, before: review.before + block.before }
  return {
    raised,
    REVIEW: review,
    BLOCK: block,
    open,
    open_by_age: openByAge,
    line: toLine(steps.flat(), span, stepMs),
  }
}

async function readWebhook(
  postgres: Postgres,
  tenant: TenantView,
  { tenantId, beforeMs, fromMs, toMs }: OverviewSpan,
): Promise<Overview['webhook']> {
  const counted = await countDeliveriesByState(postgres, { tenantId, beforeMs, fromMs, toMs })
  const health = tenant.webhook_health
  return {
    state: tenant.webhook_state,
    off_reason: tenant.webhook_off_reason,
    failing_since: health?.failing_since ?? null,
    last_failure: health?.last_failure ?? null,
    deliveries: counted.map(({ state, now, before }) => ({ state, count: { now, before } })),
  }
}

async function readAgreement(
  { readReconciliation, wallMs }: PeriodOverviewDeps,
  { tenantId, fromMs, toMs }: OverviewSpan,
): Promise<NonNullable<Overview['reconciliation']>> {
  const { hours, asOfMs } = await readReconciliation({ tenantId, fromMs, toMs })
  const sum = (stage: 'accepted' | 'stored' | 'decided' | 'alerts' | 'delivered') =>
    hours.reduce((all, hour) => all + hour[stage], 0)
  const differences = hours.reduce((all, hour) => all + hour.differences.length, 0)
  return {
    as_of: asOfMs === 0 ? null : toIso(asOfMs),
    lag_seconds: asOfMs === 0 ? null : Math.max(0, Math.round((wallMs() - asOfMs) / 1_000)),
    agrees: differences === 0,
    accepted: sum('accepted'),
    stored: sum('stored'),
    decided: sum('decided'),
    alerts: sum('alerts'),
    delivered: sum('delivered'),
    differences,
  }
}
