/**
 * The server of the api: a tenant's alerts and signal weights from Postgres, its devices from
 * ClickHouse, and the document of the public interface. It is built from its dependencies, so tests
 * can run it on any databases.
 */
import type { FastifyInstance } from 'fastify'
import { dispositionChanges, eventListLimits } from '#shared/core/base/limits/rest-api.ts'
import type { VerdictKeySet } from '#shared/core/verdicts/verdict-keys.ts'
import type { AlertQuery } from '#shared/io/alerts/alert-query.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { isFiltered } from '#shared/io/alerts/filtered-alerts-sql.ts'
import type { HistoryStore } from '#shared/io/devices/history-store.ts'
import type { UserStore } from '#shared/io/devices/user-store.ts'
import { addConditionalRequests } from '#shared/io/http/conditional-requests.ts'
import { createHttpServer, type HttpServerOptions } from '#shared/io/http/http-server.ts'
import { addIdempotency } from '#shared/io/http/idempotency.ts'
import type { OnceAnswer, OnceCall } from '#shared/io/http/idempotent-answers.ts'
import { createQueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { validatorCompiler } from '#shared/io/http/validate-requests.ts'
import type { PhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import { createKeyedLists } from '#shared/io/lists/change-lists.ts'
import { createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import {
  createRiskPercentiles,
  type RiskPercentiles,
} from '#shared/io/outcomes/risk-percentiles.ts'
import type { ScoreStore } from '#shared/io/outcomes/score-store.ts'
import type { CurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'
import type { SemaphoreLimits } from '#shared/io/process/tenant-semaphore.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import type { EventListStore } from '#shared/io/telemetry/event-list-store.ts'
import type { EventStore } from '#shared/io/telemetry/event-store.ts'
import type { TenantStore } from '#shared/io/tenants/tenant-store.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import { createAddressLimit } from './http/address-limit.ts'
import { createAuthenticate } from './http/authenticate.ts'
import { addCompression } from './http/compress-responses.ts'
import { createFindKeyHolder } from './http/find-key-holder.ts'
import { createLargeResponses } from './http/large-responses.ts'
import { createRateLimits } from './http/rate-limits.ts'
import { traceRequests } from './http/trace-requests.ts'
import { createVerdictKeyReader } from './http/verdict-key-reader.ts'
import type { PublicUrls } from './openapi/document.ts'
import { addOpenapiRoutes } from './openapi/openapi-routes.ts'
import {
  addAlertRoutes,
  type KeyedChange,
  type KeyedListedChange,
  rejectUnknownAlert,
} from './routes/alerts.ts'
import { addDeviceRoutes } from './routes/devices.ts'
import { addEventRoutes } from './routes/events.ts'
import { addLabelRoutes, type KeyedLabels } from './routes/labels.ts'
import { addListRoutes, type KeyedEntry } from './routes/lists.ts'
import { addPhoneRoutes } from './routes/phones.ts'
import { addReconciliationRoutes } from './routes/reconciliation.ts'
import { addSignalRoutes } from './routes/signals.ts'
import { addUserRoutes } from './routes/users.ts'
import { addVerdictKeyRoute } from './routes/verdict-keys.ts'

export type ApiDeps = {
  tenants: Pick<TenantStore, 'findTenantByApiKey' | 'findExistingApiKeys' | 'recordApiKeyUse'>
  alerts: Pick<
    AlertStore,
    'listAlerts' | 'listUncounted' | 'findAlertDetail' | 'setDisposition' | 'setListedDispositions'
  >
  /** Changes Postgres once for a call with an `Idempotency-Key`. */
  answerOnce: <T>(
    call: OnceCall,
    work: (postgres: Postgres) => Promise<T>,
  ) => Promise<OnceAnswer<T>>
  history: Pick<HistoryStore, 'findSmallDevice' | 'findLargeDevice'>
  users: UserStore
  phones: Pick<PhoneStore, 'readPhone' | 'findPhonesOfDevices'> & PhoneAlerts
  events: Pick<EventStore, 'findDecidedEvent'> & EventListStore
  policies: CurrentPolicyStore
  lists: ReturnType<typeof createKeyedLists>
  labels: ReturnType<typeof createKeyedLabels>
  /** Left out, no answer has a percentile. */
  countScores?: ScoreStore['countScores']
  reconciliation: Pick<ReconciliationStore, 'readReconciliation'>
  /** The published keys of verdicts at an instant of the wall clock. */
  readVerdictKeys: (nowMs: number) => Promise<VerdictKeySet>
  /** Left out or null while it is off. */
  tracing?: Tracing | null
  /** For the document; left out, addresses are relative or local. */
  publicUrls?: PublicUrls
  /** The wall clock, and one that never goes back. */
  nowMs: () => number
  monotonicMs: () => number
}

/**
 * Limits of concurrent ClickHouse queries, which share 48 connections: 11 for devices, 11 for the
 * phones of devices, 4 for reconciliation, 4 for large responses, 3 for lists of events, 3 for each
 * of the look-ups of users and events, three for each of at most 2 phones, and 1 for percentiles.
 * One tenant never uses all of them, and the readiness check always has one.
 */
const deviceQueryLimits: SemaphoreLimits = {
  perTenant: 8,
  total: 11,
  queuePerTenant: 2_000,
  waitMs: 1_000,
}
/** A phone has three queries at once. */
const phoneLimits: SemaphoreLimits = { perTenant: 1, total: 2, queuePerTenant: 200, waitMs: 2_000 }
const reconciliationQueryLimits: SemaphoreLimits = {
  perTenant: 2,
  total: 4,
  queuePerTenant: 100,
  waitMs: 5_000,
}

/** A user or an event: an event is searched for in all of the tenant's telemetry. */
const lookUpLimits: SemaphoreLimits = {
  perTenant: 2,
  total: 3,
  queuePerTenant: 200,
  waitMs: 2_000,
}

/**
 * Limits of concurrent alert lists by filters that counters do not answer, of 20 connections to
 * Postgres: each reads an index of the tenant's alerts.
 */
const filteredAlertLimits: SemaphoreLimits = {
  perTenant: 4,
  total: 8,
  queuePerTenant: 200,
  waitMs: 2_000,
}

/** Builds the server; it does not listen yet. */
export async function createApiApp(
  deps: ApiDeps,
  http: HttpServerOptions,
): Promise<FastifyInstance> {
  const { log, metrics } = http
  const timed = createTimer(metrics, deps.monotonicMs)
  const limited = createQueryLimiter(metrics, 'di_api_queries_rejected_total')
  const notFoundHint = 'The calls are in /openapi.json. Telemetry is sent to the address of ingest.'
  const app = createHttpServer({ ...http, notFoundHint })
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  await addCompression(app)
  await addOpenapiRoutes(app, deps.publicUrls ?? {})
  // Before the scope that authenticates: these calls need no key.
  await app.register(async (scope) => {
    scope.setValidatorCompiler(validatorCompiler)
    scope.setSerializerCompiler(() => JSON.stringify)
    addConditionalRequests(scope)
    addVerdictKeyRoute(scope.withTypeProvider() as ZodApp, {
      readVerdictKeys: createVerdictKeyReader({
        ...deps,
        readKeys: timed('verdict_keys', deps.readVerdictKeys),
        onFailed: (error) =>
          log.warn({ err: error }, 'the verdict keys cannot be read: the last ones count'),
      }),
      takeCallOf: createAddressLimit(deps.monotonicMs, metrics),
    })
  })
  const authenticate = createAuthenticate({
    findKeyHolder: createFindKeyHolder(
      {
        findTenantByApiKey: timed('api_key', deps.tenants.findTenantByApiKey),
        findExistingApiKeys: timed('api_keys', deps.tenants.findExistingApiKeys),
      },
      metrics,
      deps.monotonicMs,
    ),
    recordApiKeyUse: deps.tenants.recordApiKeyUse,
    rateLimits: createRateLimits(deps.monotonicMs, metrics),
    nowMs: deps.nowMs,
    log,
    metrics,
  })
  await app.register(async (scope) => {
    scope.setValidatorCompiler(validatorCompiler)
    // Response schemas are documentation: handlers build responses field by field.
    scope.setSerializerCompiler(() => JSON.stringify)
    scope.decorateRequest('caller', null as never)
    scope.addHook('onRequest', authenticate)
    if (deps.tracing) traceRequests(scope, deps.tracing)
    addConditionalRequests(scope)
    addIdempotency(scope)
    addRoutes(scope.withTypeProvider() as ZodApp)
  })
  return app

  async function setDispositionOnce({ tenantId, once, ...change }: KeyedChange) {
    const set = async ({ setDisposition }: Pick<AlertStore, 'setDisposition'>) =>
      (await setDisposition({ ...change, scope: [tenantId] })) ?? rejectUnknownAlert()
    if (once === null) return { answer: await set(deps.alerts), replayed: false }
    return deps.answerOnce(once, (postgres) => set(createAlertStore(postgres)))
  }

  async function setListedOnce({ once, ...change }: KeyedListedChange) {
    const set = ({ setListedDispositions }: Pick<AlertStore, 'setListedDispositions'>) =>
      setListedDispositions(change)
    if (once === null) return { answer: await set(deps.alerts), replayed: false }
    return deps.answerOnce(once, (postgres) => set(createAlertStore(postgres)))
  }

  async function addEntryOnce({ once, ...wanted }: KeyedEntry) {
    if (once === null) return { answer: await deps.lists.addEntry(wanted), replayed: false }
    return deps.answerOnce(once, (postgres) =>
      createKeyedLists(postgres, deps.nowMs).addEntry(wanted),
    )
  }

  async function addLabelsOnce({ once, ...wanted }: KeyedLabels) {
    if (once === null) return { answer: await deps.labels.addLabels(wanted), replayed: false }
    return deps.answerOnce(once, (postgres) =>
      createKeyedLabels(postgres, deps.nowMs).addLabels(wanted),
    )
  }

  function createPercentiles(): { findPercentile: RiskPercentiles['find'] } {
    const { countScores, nowMs } = deps
    if (countScores === undefined) return { findPercentile: async () => ({}) }
    const count = timed('risk_percentile', countScores)
    return { findPercentile: createRiskPercentiles({ countScores: count, limited, nowMs }).find }
  }

  function addRoutes(routes: ZodApp): void {
    const listFiltered = limited(
      'filtered_alerts',
      filteredAlertLimits,
      timed('filtered_alerts', deps.alerts.listAlerts),
    )
    const { findPercentile } = createPercentiles()
    const listCounted = timed('alerts', deps.alerts.listAlerts)
    addAlertRoutes(routes, {
      listAlerts: (query: AlertQuery) =>
        isFiltered(query) ? listFiltered(query) : listCounted(query),
      findPercentile,
      findAlertDetail: timed('alert', deps.alerts.findAlertDetail),
      setListedDispositions: limited(
        'dispositions',
        dispositionChanges,
        timed('dispositions', setListedOnce),
      ),
      setDisposition: limited(
        'disposition',
        dispositionChanges,
        timed('disposition', setDispositionOnce),
      ),
    })
    const beginLargeResponse = createLargeResponses(metrics)
    const findPhones = limited(
      'device_phones',
      deviceQueryLimits,
      timed('device_phones', deps.phones.findPhonesOfDevices),
    )
    addPhoneRoutes(routes, {
      readPhone: limited('phone', phoneLimits, timed('phone', deps.phones.readPhone)),
      listPhoneAlerts: limited(
        'phone_alerts',
        filteredAlertLimits,
        timed('phone_alerts', deps.phones.listPhoneAlerts),
      ),
    })
    addDeviceRoutes(routes, {
      findSmallDevice: limited(
        'device',
        deviceQueryLimits,
        timed('device', deps.history.findSmallDevice),
      ),
      findLargeDevice: timed('large_device', deps.history.findLargeDevice),
      listUncounted: limited(
        'device_alerts',
        deviceQueryLimits,
        timed('device_alerts', deps.alerts.listUncounted),
      ),
      findPhones,
      findPercentile,
      beginLargeResponse,
    })
    const { findUserTotals, listUserDevices } = deps.users
    addUserRoutes(routes, {
      findUserTotals: limited('user', lookUpLimits, timed('user', findUserTotals)),
      listUserDevices: limited(
        'user_devices',
        lookUpLimits,
        timed('user_devices', listUserDevices),
      ),
      findPhones,
      beginLargeResponse,
    })
    addEventRoutes(routes, {
      findPhones,
      findDecidedEvent: limited(
        'event',
        lookUpLimits,
        timed('event', deps.events.findDecidedEvent),
      ),
      listEvents: limited('events', eventListLimits, timed('events', deps.events.listEvents)),
      findCurrentPolicy: timed('policy', deps.policies.findCurrentPolicy),
    })
    addListRoutes(routes, {
      listEntries: limited('lists', filteredAlertLimits, timed('lists', deps.lists.listEntries)),
      addEntry: limited('list_add', dispositionChanges, timed('list_add', addEntryOnce)),
      removeEntry: limited(
        'list_remove',
        dispositionChanges,
        timed('list_remove', deps.lists.removeEntry),
      ),
    })
    addLabelRoutes(routes, {
      listLabels: limited('labels', filteredAlertLimits, timed('labels', deps.labels.listLabels)),
      listCodes: limited('labels', filteredAlertLimits, timed('labels', deps.labels.listCodes)),
      addLabels: limited('labels_add', dispositionChanges, timed('labels_add', addLabelsOnce)),
    })
    addSignalRoutes(routes, {
      findCurrentPolicy: timed('policy', deps.policies.findCurrentPolicy),
      nowMs: deps.nowMs,
    })
    addReconciliationRoutes(routes, {
      readReconciliation: limited(
        'reconciliation',
        reconciliationQueryLimits,
        timed('reconciliation', deps.reconciliation.readReconciliation),
      ),
      nowMs: deps.nowMs,
    })
  }
}

/** Measures the duration of every database query, failures included. */
function createTimer(metrics: Metrics, monotonicMs: () => number) {
  const seconds = metrics.histogram<'query' | 'outcome'>(
    'di_api_query_seconds',
    'Duration of database queries, by query and outcome',
    { buckets: latencyBucketsSeconds, labels: ['query', 'outcome'] },
  )
  return <Query, Result>(name: string, run: (query: Query) => Promise<Result>) =>
    async (query: Query): Promise<Result> => {
      const startMs = monotonicMs()
      let outcome = 'failed'
      try {
        const result = await run(query)
        outcome = 'ok'
        return result
      } finally {
        seconds.observe({ query: name, outcome }, (monotonicMs() - startMs) / 1_000)
      }
    }
}
