/**
 * The console's server: the admin API under `/admin/v1` behind its bearer token, its OpenAPI
 * document, the pages in a browser, and the health routes that every process has. Built from its
 * dependencies, so tests can run it on any databases.
 */
import cookie from '@fastify/cookie'
import type { FastifyInstance } from 'fastify'
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { addConditionalRequests } from '#shared/io/http/conditional-requests.ts'
import { createHttpServer, type HttpServerOptions } from '#shared/io/http/http-server.ts'
import { addIdempotency } from '#shared/io/http/idempotency.ts'
import { createQueryLimiter, type QueryLimiter } from '#shared/io/http/limit-queries.ts'
import { addOpenapi } from '#shared/io/http/openapi.ts'
import { validatorCompiler } from '#shared/io/http/validate-requests.ts'
import {
  createRiskPercentiles,
  type RiskPercentiles,
} from '#shared/io/outcomes/risk-percentiles.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { addAlertRoutes } from './alerts/alert-routes.ts'
import { addAssigneeRoute } from './alerts/assignee-routes.ts'
import { addBulkRoutes } from './alerts/bulk-routes.ts'
import { addAlertCsvRoute } from './alerts/csv-routes.ts'
import { type AlertReads, createAlertReads } from './alerts/read-alerts.ts'
import { addAlertStreamRoute } from './alerts/stream-routes.ts'
import { addAnalystRoutes } from './analytics/analyst-routes.ts'
import { addFleetRoutes } from './analytics/fleet/fleet-routes.ts'
import { addRulePerformanceRoutes } from './analytics/rule-performance-routes.ts'
import { addSignalRoutes } from './analytics/signal-routes.ts'
import { addSqlRoutes } from './analytics/sql/sql-routes.ts'
import { createProposalCounter, type ProposalCounter } from './approvals/count-proposals.ts'
import { addFourEyesRoutes } from './approvals/four-eyes-routes.ts'
import { addProposalRoutes } from './approvals/proposal-routes.ts'
import { addAppRoutes } from './attestation/app-routes.ts'
import { addAttestationCheckRoute } from './attestation/check-routes.ts'
import { addCoverageRoute } from './attestation/coverage-routes.ts'
import { addAuditRoutes } from './audit/audit-routes.ts'
import { addCaseChangeRoutes } from './cases/case-change-routes.ts'
import { addCaseRoutes } from './cases/case-routes.ts'
import { addCaseRuleRoutes } from './cases/case-rule-routes.ts'
import { addDeliveryRoutes } from './deliveries/delivery-routes.ts'
import { addEntityRoutes } from './entities/entity-routes.ts'
import { addLinkRoutes } from './entities/link-routes.ts'
import { addSearchRoutes } from './entities/search-routes.ts'
import { addSignalChangeRoute } from './entities/signal-change-routes.ts'
import { addTimelineRoutes } from './entities/timeline-routes.ts'
import { addErasureRoutes } from './erasure/erasure-routes.ts'
import { addEventCountRoute } from './events/event-count-routes.ts'
import { addEventListRoute } from './events/event-list-routes.ts'
import { addEventRoutes } from './events/event-routes.ts'
import type { ConsoleApp } from './http/admin-app.ts'
import { createTokenCheck, type TokenCheckDeps } from './http/check-token.ts'
import { createRefusalAudit } from './http/refusal-audit.ts'
import { addSecretRoutes } from './keys/secret-routes.ts'
import { addVerdictKeyRoutes } from './keys/verdict-key-routes.ts'
import { addListRoutes } from './lists/list-routes.ts'
import { addNetworkRoutes } from './network/network-routes.ts'
import { addNetworkUseRoutes } from './network/network-use-routes.ts'
import { createAttemptLimits, limitedBys } from './operators/attempt-limits.ts'
import { addAuthentication } from './operators/authenticate.ts'
import { createKnownTokens } from './operators/known-tokens.ts'
import type { OperatorDeps, OperatorParts } from './operators/operator-deps.ts'
import { addOperatorRoutes } from './operators/operator-routes.ts'
import { createPublicOrigin } from './operators/public-origin.ts'
import { addLabelRoutes } from './outcomes/label-routes.ts'
import { addPeriodOverviewRoute } from './overview/overview-routes.ts'
import { addPhoneRoutes } from './phones/phone-routes.ts'
import { addBacktestRoutes } from './policies/backtest-routes.ts'
import { addDraftRoutes } from './policies/drafts/draft-routes.ts'
import { addPolicyRoutes } from './policies/policy-routes.ts'
import { addScoreRoutes } from './policies/score-routes.ts'
import { addShadowRoutes } from './policies/shadow-routes.ts'
import { addSuggestionRoutes } from './policies/suggestion-routes.ts'
import { addReconciliationRoutes } from './reconciliation/reconciliation-routes.ts'
import { addRecoveryRoutes } from './recovery/recovery-routes.ts'
import { addRetentionRoutes } from './retention/retention-routes.ts'
import { addSavedViewRoutes } from './saved-views/saved-view-routes.ts'
import { toAdminDocument } from './serve/admin-document.ts'
import { addPages, asksForPage, type PagesDeps, withoutPrefix } from './serve/serve-pages.ts'
import { addAddressRoutes } from './tenants/address-routes.ts'
import { addClientAddressRoutes } from './tenants/addresses/client-address-routes.ts'
import { addCredentialRoutes } from './tenants/credential-routes.ts'
import { addEdgeRoutes } from './tenants/edge-routes.ts'
import { addIngestAnswerRoute } from './tenants/ingest-answer-routes.ts'
import { addInstallRoutes } from './tenants/installs/install-routes.ts'
import { addKeyRoutes } from './tenants/key-routes.ts'
import { addRequestLogRoute } from './tenants/request-log-routes.ts'
import { addRotationRoutes } from './tenants/rotation-routes.ts'
import { addSignatureRoutes } from './tenants/signature-routes.ts'
import { addStaleSecretRoutes } from './tenants/stale-secret-routes.ts'
import { addTenantRoutes } from './tenants/tenant-routes.ts'

/** Adds the routes of the admin API; each names its own dependencies. Operators have theirs. */
const routes = [
  addTenantRoutes,
  addStaleSecretRoutes,
  addRequestLogRoute,
  addSignatureRoutes,
  addAppRoutes,
  addAttestationCheckRoute,
  addCoverageRoute,
  addCredentialRoutes,
  addRotationRoutes,
  addInstallRoutes,
  addAlertRoutes,
  addAssigneeRoute,
  addBulkRoutes,
  addAlertCsvRoute,
  addAlertStreamRoute,
  addCaseRoutes,
  addCaseChangeRoutes,
  addCaseRuleRoutes,
  addSavedViewRoutes,
  addEntityRoutes,
  addLinkRoutes,
  addPhoneRoutes,
  addSignalChangeRoute,
  addTimelineRoutes,
  addSearchRoutes,
  addPeriodOverviewRoute,
  addDeliveryRoutes,
  addAuditRoutes,
  addEdgeRoutes,
  addNetworkRoutes,
  addNetworkUseRoutes,
  addAddressRoutes,
  addReconciliationRoutes,
  addPolicyRoutes,
  addDraftRoutes,
  addFourEyesRoutes,
  addProposalRoutes,
  addBacktestRoutes,
  addSuggestionRoutes,
  addScoreRoutes,
  addShadowRoutes,
  addEventRoutes,
  addEventListRoute,
  addEventCountRoute,
  addSignalRoutes,
  addRulePerformanceRoutes,
  addSecretRoutes,
  addVerdictKeyRoutes,
  addIngestAnswerRoute,
  addClientAddressRoutes,
  addRecoveryRoutes,
  addRetentionRoutes,
  addErasureRoutes,
  addListRoutes,
  addLabelRoutes,
  addAnalystRoutes,
  addSqlRoutes,
  addFleetRoutes,
  addKeyRoutes,
]

type RouteDeps = AllOf<Parameters<(typeof routes)[number]>[1]>
/** The members of a union as one type that has them all. */
type AllOf<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  one: infer All,
) => void
  ? All
  : never

/** What the server is built from; `addRoutes` makes what routes share. */
export type ConsoleDeps = Omit<RouteDeps, keyof SharedReads> &
  OperatorDeps &
  PagesDeps &
  Omit<TokenCheckDeps, 'metrics'>

type SharedReads = AlertReads & {
  limited: QueryLimiter
  countProposal: ProposalCounter
  findPercentile: RiskPercentiles['find']
}

const adminBodyBytesMax = 1024 * 1024
const prefix = '/admin/v1'

/** Builds the server; it does not listen yet. */
export async function createConsoleApp(
  deps: ConsoleDeps,
  http: HttpServerOptions,
): Promise<FastifyInstance> {
  const rewriteUrl = (url: string) => withoutPrefix(url, deps.publicUrl())
  const app = createHttpServer({
    ...http,
    bodyBytesMax: adminBodyBytesMax,
    rewriteUrl,
    hasNotFoundPage: asksForPage,
  })
  const token = createTokenCheck({ ...deps, metrics: http.metrics })
  app.addHook('onClose', token.close)
  const operators = createOperatorParts(deps, http.metrics)
  app.addHook('onClose', operators.refused.close)
  await app.register(cookie)
  await addOpenapi(app, toAdminDocument(prefix))
  await addPages(app, deps)
  await app.register(
    async (scope) => {
      scope.setValidatorCompiler(validatorCompiler)
      scope.setSerializerCompiler(serializerCompiler)
      // Before any route says anything: a stranger cannot tell which tenants exist.
      addAuthentication(scope, prefix, { ...operators, token })
      addConditionalRequests(scope)
      addIdempotency(scope)
      addRoutes(scope.withTypeProvider<ZodTypeProvider>() as ConsoleApp, deps, http.metrics)
      addOperatorRoutes(scope.withTypeProvider<ZodTypeProvider>() as ConsoleApp, operators)
      scope.get('/openapi.json', { schema: { hide: true } as object }, async (_, reply) =>
        // The document has no response schema, so it is serialized here.
        reply.type('application/json; charset=utf-8').send(JSON.stringify(app.swagger())),
      )
    },
    { prefix },
  )
  return app
}

function addRoutes(app: ConsoleApp, deps: ConsoleDeps, metrics: Metrics): void {
  const limited = createQueryLimiter(metrics, 'di_console_queries_rejected_total')
  const { find: findPercentile } = createRiskPercentiles({
    countScores: (range) => deps.scores.countScores(range),
    limited,
    nowMs: () => deps.wallMs(),
  })
  const countProposal = createProposalCounter(app, metrics)
  const reads = createAlertReads(deps.postgres, limited)
  const all = { ...deps, ...reads, limited, countProposal, findPercentile }
  for (const add of routes) add(app, all)
}

function createOperatorParts(deps: ConsoleDeps, metrics: Metrics): OperatorParts {
  const signIns = metrics.counter(
    'di_console_sign_ins_total',
    'Sign-ins of operators by outcome: signed_in, or why not',
    ['outcome'],
  )
  const limited = metrics.counter<'by'>(
    'di_console_attempts_limited_total',
    'Tries of passwords, codes and tokens that were refused unseen, by whose limit was reached',
    ['by'],
  )
  startAtZero(
    limited,
    limitedBys.map((by) => ({ by })),
  )
  return {
    ...deps,
    onSignIn: (outcome) => signIns.inc({ outcome }),
    origin: createPublicOrigin(deps.publicUrl),
    limits: createAttemptLimits(deps.nowMs, (by) => limited.inc({ by })),
    knownTokens: createKnownTokens(),
    refused: createRefusalAudit({
      postgres: deps.postgres,
      log: deps.log,
      action: 'operator.sign_in_refused',
      message: 'wrong passwords or codes of operators were sent',
      everyMs: deps.auditEveryMs,
    }),
  }
}
