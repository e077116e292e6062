/** What dispositions teach of a tenant's policy, and signals that jumped with an SDK release. */
import { parseInstant } from '#shared/core/base/instants.ts'
import type { LearningStore } from '#shared/io/analytics/learning-store.ts'
import type {
  SignalJumpStore,
  StoredJump,
  TouchedByJump,
} from '#shared/io/analytics/signal-jump-store.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { ConsoleApp, ConsoleDeps } from '../app.ts'
import { problemSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  learningQuery,
  learningSchema,
  signalJumpsQuery,
  signalJumpsSchema,
} from './learning-schemas.ts'

export type LearningDeps = {
  readLearning: LearningStore['readLearning']
  signalJumps: Pick<SignalJumpStore, 'listJumps' | 'findTouched' | 'readCheckedAt'>
}

/** Jumps of which devices and alerts are named: each is a query. */
const namedMax = 10

export function addLearningRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const refuse = (error: unknown): never => {
    throw unavailable('The alerts cannot be read at the moment.', toLoggable(error))
  }
  app.get(
    '/tenants/:tenant_id/learning',
    {
      schema: {
        summary: 'How often each flag, reason and signal is right, from dispositions',
        params: tenantParams,
        querystring: learningQuery,
        response: { 200: learningSchema, default: problemSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since } }) => {
      await requireTenant(deps.postgres, tenantId)
      const sinceMs = since === undefined ? null : parseInstant(since)
      const learned = await deps.readLearning({ tenantId, sinceMs }).catch(refuse)
      return { since: sinceMs === null ? null : new Date(sinceMs).toISOString(), ...learned }
    },
  )
  app.get(
    '/tenants/:tenant_id/signal-jumps',
    {
      schema: {
        summary: 'Signals whose share jumped within one SDK version, newest first',
        params: tenantParams,
        querystring: signalJumpsQuery,
        response: { 200: signalJumpsSchema, default: problemSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { open } }) => {
      await requireTenant(deps.postgres, tenantId)
      const { listJumps, findTouched, readCheckedAt } = deps.signalJumps
      const jumps = await listJumps({ tenantId, openOnly: open }).catch(refuse)
      const checkedAtMs = await readCheckedAt().catch(refuse)
      const data = []
      for (const [at, jump] of jumps.entries()) {
        const range = { fromMs: jump.startedAtMs, untilMs: jump.checkedAtMs }
        const touched =
          at < namedMax ? await findTouched({ tenantId, ...jump, ...range }).catch(refuse) : null
        data.push(toBody(jump, touched))
      }
      return { checked_at: checkedAtMs === 0 ? null : toIso(checkedAtMs), data }
    },
  )
}

const toIso = (ms: number): string => new Date(ms).toISOString()

function toBody(jump: StoredJump, touched: TouchedByJump | null) {
  return {
    platform: jump.platform,
    sdk_version: jump.sdkVersion,
    signal: jump.signal,
    started_at: toIso(jump.startedAtMs),
    checked_at: toIso(jump.checkedAtMs),
    ended_at: jump.endedAtMs === null ? null : toIso(jump.endedAtMs),
    share: jump.share,
    earlier_share: jump.earlierShare,
    elsewhere_share: jump.elsewhereShare,
    z_score: jump.zScore,
    devices: touched?.devices ?? jump.devices,
    alerts: touched?.alerts ?? jump.alerts,
    device_ids: touched?.deviceIds ?? [],
    alert_ids: touched?.alertIds ?? [],
  }
}
