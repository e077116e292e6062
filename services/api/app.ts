/**
 * The api's server: a tenant's alerts and signal weights from Postgres, its devices from
 * ClickHouse, and the document of the public interface. Built from its dependencies, so that tests
 * can run it on any databases.
 */
import type { FastifyInstance } from 'fastify'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import type { HistoryStore } from '#shared/io/devices/history-store.ts'
import {
  createHttpServer,
  type HttpServerOptions,
  unavailable,
} from '#shared/io/http/http-server.ts'
import type { CurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'
import { createTurns, type TurnLimits } from '#shared/io/process/turns.ts'
import type { LedgerStore } from '#shared/io/reconciliation/ledger-store.ts'
import type { TenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createGuard } from './http/authenticate.ts'
import { addCompression } from './http/compress-answers.ts'
import { createFindKeyHolder } from './http/find-key-holder.ts'
import { createLargeAnswers } from './http/large-answers.ts'
import { createRateLimits } from './http/rate-limits.ts'
import { addAlertRoutes } from './routes/alerts.ts'
import { addDeviceRoutes } from './routes/devices.ts'
import { addLedgerRoutes } from './routes/ledger.ts'
import { addOpenapiRoutes } from './routes/openapi.ts'
import { addSignalRoutes } from './routes/signals.ts'

export type ApiDeps = {
  tenants: Pick<TenantStore, 'findTenantByApiKey' | 'recordApiKeyUse'>
  alerts: Pick<AlertStore, 'listAlerts'>
  history: Pick<HistoryStore, 'findSmallDevice' | 'findLargeDevice'>
  policies: CurrentPolicyStore
  ledger: Pick<LedgerStore, 'readLedger'>
  /** The wall clock, and one that never goes back. */
  nowMs: () => number
  monotonicMs: () => number
}

/**
 * What is asked of ClickHouse at once, over 24 connections: one tenant never has them all, and
 * whether ClickHouse is there can be told at any time. A ledger is a question over everything.
 * Large answers have four connections more, one each.
 */
const deviceTurns: TurnLimits = { ofTenant: 8, inAll: 11, waiting: 2_000, waitMs: 1_000 }
const ledgerTurns: TurnLimits = { ofTenant: 2, inAll: 4, waiting: 100, waitMs: 5_000 }

/** Builds the server; it does not listen yet. */
export async function createApiApp(
  deps: ApiDeps,
  http: HttpServerOptions,
): Promise<FastifyInstance> {
  const { log, metrics } = http
  const timed = createTimer(metrics, deps.monotonicMs)
  const inTurn = createInTurn(metrics)
  const app = createHttpServer(http)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  await addCompression(app)
  const guard = createGuard({
    findTenantByApiKey: createFindKeyHolder(
      timed('api_key', deps.tenants.findTenantByApiKey),
      metrics,
      deps.monotonicMs,
    ),
    recordApiKeyUse: deps.tenants.recordApiKeyUse,
    rateLimits: createRateLimits(deps.monotonicMs, metrics),
    nowMs: deps.nowMs,
    log,
    metrics,
  })
  addAlertRoutes(app, guard, { listAlerts: timed('alerts', deps.alerts.listAlerts) })
  addDeviceRoutes(app, guard, {
    findSmallDevice: inTurn('device', deviceTurns, timed('device', deps.history.findSmallDevice)),
    findLargeDevice: timed('large_device', deps.history.findLargeDevice),
    beginLargeAnswer: createLargeAnswers(metrics),
  })
  addSignalRoutes(app, guard, {
    findCurrentPolicy: timed('policy', deps.policies.findCurrentPolicy),
    nowMs: deps.nowMs,
  })
  addLedgerRoutes(app, guard, {
    readLedger: inTurn('ledger', ledgerTurns, timed('ledger', deps.ledger.readLedger)),
    nowMs: deps.nowMs,
  })
  await addOpenapiRoutes(app)
  return app
}

/** Measures what the databases take of an answer's time, failures included. */
function createTimer(metrics: Metrics, monotonicMs: () => number) {
  const seconds = metrics.histogram<'query' | 'outcome'>(
    'di_api_query_seconds',
    'Queries of the databases by what was asked',
    { buckets: latencyBucketsSeconds, labels: ['query', 'outcome'] },
  )
  return <Ask, Answer>(query: string, run: (ask: Ask) => Promise<Answer>) =>
    async (ask: Ask): Promise<Answer> => {
      const startMs = monotonicMs()
      let outcome = 'failed'
      try {
        const answer = await run(ask)
        outcome = 'ok'
        return answer
      } finally {
        seconds.observe({ query, outcome }, (monotonicMs() - startMs) / 1_000)
      }
    }
}

/** Lets tenants ask in turn, so that none takes all connections. */
function createInTurn(metrics: Metrics) {
  const refused = metrics.counter(
    'di_api_turns_refused_total',
    'Questions that found no place beside others of their tenant in time',
    ['query'],
  )
  return <Ask extends { tenantId?: string }, Answer>(
    query: string,
    limits: TurnLimits,
    run: (ask: Ask) => Promise<Answer>,
  ) => {
    const turns = createTurns(limits)
    return async (ask: Ask): Promise<Answer> => {
      const turn = await turns.take(ask.tenantId ?? '')
      if (turn === null) {
        refused.inc({ query })
        throw unavailable('The tenant asks more at once than can be answered.')
      }
      try {
        return await run(ask)
      } finally {
        turn.end()
      }
    }
  }
}
