/**
 * Rule performance of a tenant's policy, from dispositions, and prevalence spikes of signals within
 * an SDK version.
 */
import { parseInstant } from '#shared/core/base/instants.ts'
import type {
  AffectedBySpike,
  PrevalenceSpikeStore,
  StoredSpike,
} from '#shared/io/analytics/prevalence-spike-store.ts'
import type { RulePerformanceStore } from '#shared/io/analytics/rule-performance-store.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
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

/** Spikes of which devices and alerts are named: each is a query. */
const namedMax = 10

export function addRulePerformanceRoutes(app: ConsoleApp, deps: RulePerformanceDeps): void {
  const refuse = (error: unknown): never => {
    throw unavailable('The alerts cannot be read at the moment.', toLoggable(error))
  }
  app.get(
    '/tenants/:tenant_id/rule-performance',
    {
      schema: {
        summary: 'How often each flag, reason and signal is right, from dispositions',
        params: tenantParams,
        querystring: rulePerformanceQuery,
        response: { 200: rulePerformanceSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since } }) => {
      await requireTenant(deps.postgres, tenantId)
      const sinceMs = since === undefined ? null : parseInstant(since)
      const performance = await deps.readRulePerformance({ tenantId, sinceMs }).catch(refuse)
      return { since: sinceMs === null ? null : new Date(sinceMs).toISOString(), ...performance }
    },
  )
  app.get(
    '/tenants/:tenant_id/prevalence-spikes',
    {
      schema: {
        summary: 'Prevalence spikes of signals within one SDK version, newest first',
        params: tenantParams,
        querystring: prevalenceSpikesQuery,
        response: { 200: prevalenceSpikesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { open } }) => {
      await requireTenant(deps.postgres, tenantId)
      const { listSpikes, findAffected, readCheckedAt } = deps.prevalenceSpikes
      const spikes = await listSpikes({ tenantId, openOnly: open }).catch(refuse)
      const checkedAtMs = await readCheckedAt().catch(refuse)
      const data = []
      for (const [at, spike] of spikes.entries()) {
        const range = { fromMs: spike.startedAtMs, untilMs: spike.checkedAtMs }
        const affected =
          at < namedMax ? await findAffected({ tenantId, ...spike, ...range }).catch(refuse) : null
        data.push(toBody(spike, affected))
      }
      return { checked_at: checkedAtMs === 0 ? null : toIso(checkedAtMs), data }
    },
  )
}

const toIso = (ms: number): string => new Date(ms).toISOString()

function toBody(spike: StoredSpike, affected: AffectedBySpike | null) {
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
