/**
 * Routes of rule performance, which comes from dispositions and labels, and of prevalence spikes of
 * signals within an SDK version.
 */
import { toIso } from '#shared/core/base/instants.ts'
import type {
  AffectedBySpike,
  PrevalenceSpikeStore,
  StoredSpike,
} from '#shared/io/analytics/prevalence-spike-store.ts'
import type { RulePerformanceStore } from '#shared/io/analytics/rule-performance-store.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  prevalenceSpikesQuery,
  prevalenceSpikesSchema,
  rulePerformanceQuery,
  rulePerformanceSchema,
} from './rule-performance-schemas.ts'

export type RulePerformanceDeps = {
  postgres: Queryable
  readRulePerformance: RulePerformanceStore['readRulePerformance']
  prevalenceSpikes: Pick<PrevalenceSpikeStore, 'listSpikes' | 'findAffected' | 'readCheckedAt'>
}

/** Spikes whose devices and alerts are listed: each needs a query. */
const listedMax = 10

/** Adds the routes. */
export function addRulePerformanceRoutes(app: ConsoleApp, deps: RulePerformanceDeps): void {
  const reject = rejectUnavailable('The alerts cannot be read at the moment.')
  app.get(
    '/tenants/:tenant_id/rule-performance',
    {
      schema: {
        operationId: 'findRulePerformance',
        tags: ['Analytics'],
        summary: 'Precision of each flag, reason and signal; fraud caught and missed',
        params: tenantParams,
        querystring: rulePerformanceQuery,
        response: { 200: rulePerformanceSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since, until } }) => {
      await requireTenant(deps.postgres, tenantId)
      const sinceMs = since ?? null
      const period = { tenantId, sinceMs, untilMs: until ?? null }
      const performance = await deps.readRulePerformance(period).catch(reject)
      return { since: sinceMs === null ? null : toIso(sinceMs), ...performance }
    },
  )
  app.get(
    '/tenants/:tenant_id/prevalence-spikes',
    {
      schema: {
        operationId: 'listPrevalenceSpikes',
        tags: ['Analytics'],
        summary: 'Prevalence spikes of signals within one SDK version, newest first',
        params: tenantParams,
        querystring: prevalenceSpikesQuery,
        response: { 200: prevalenceSpikesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { open, affected: isAsked } }) => {
      await requireTenant(deps.postgres, tenantId)
      const { listSpikes, findAffected, readCheckedAt } = deps.prevalenceSpikes
      const spikes = await listSpikes({ tenantId, openOnly: open }).catch(reject)
      const checkedAtMs = await readCheckedAt().catch(reject)
      const data = []
      for (const [at, spike] of spikes.entries()) {
        const range = { fromMs: spike.startedAtMs, untilMs: spike.checkedAtMs }
        const isListed = isAsked && at < listedMax
        const affected = isListed
          ? await findAffected({ tenantId, ...spike, ...range }).catch(reject)
          : null
        data.push(toSpike(spike, affected))
      }
      return { checked_at: checkedAtMs === 0 ? null : toIso(checkedAtMs), data }
    },
  )
}

function toSpike(spike: StoredSpike, affected: AffectedBySpike | null) {
  return {
    platform: spike.platform,
    sdk_version: spike.sdkVersion,
    signal: spike.signal,
    started_at: toIso(spike.startedAtMs),
    checked_at: toIso(spike.checkedAtMs),
    ended_at: spike.endedAtMs === null ? null : toIso(spike.endedAtMs),
    share: spike.prevalence,
    earlier_share: spike.earlierPrevalence,
    elsewhere_share: spike.elsewherePrevalence,
    z_score: spike.zScore,
    devices: affected?.devices ?? spike.devices,
    alerts: affected?.alerts ?? spike.alerts,
    device_ids: affected?.deviceIds ?? [],
    alert_ids: affected?.alertIds ?? [],
  }
}
