/**
 * The console's server: the admin API under `/admin/v1` behind its bearer token, its OpenAPI
 * document, and the health routes that every process has. Built from its dependencies, so tests can
 * run it on any databases.
 */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import {
  jsonSchemaTransform,
  serializerCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod'
import { createHttpServer, type HttpServerOptions } from '#shared/io/http/http-server.ts'
import { type AlertRouteDeps, addAlertRoutes } from './alerts/alert-routes.ts'
import { addAnalystRoutes } from './analytics/analyst-routes.ts'
import type { AnalystDeps } from './analytics/manage-analysts.ts'
import {
  addRulePerformanceRoutes,
  type RulePerformanceDeps,
} from './analytics/rule-performance-routes.ts'
import { addSignalRoutes, type SignalRouteDeps } from './analytics/signal-routes.ts'
import { addDeliveryRoutes } from './deliveries/delivery-routes.ts'
import type { DeliveryDeps } from './deliveries/manage-deliveries.ts'
import { addErasureRoutes, type EraseRouteDeps } from './erasure/erasure-routes.ts'
import { addEventRoutes } from './events/event-routes.ts'
import type { ExplainDeps } from './events/explain-event.ts'
import type { ConsoleApp } from './http/admin-app.ts'
import { createTokenCheck, type TokenCheckDeps } from './http/check-token.ts'
import { describeAnswers } from './http/openapi-answers.ts'
import { problemValidatorCompiler } from './http/validation.ts'
import { addBacktestRoutes, type BacktestRouteDeps } from './policies/backtest-routes.ts'
import { addPolicyRoutes, type PolicyRouteDeps } from './policies/policy-routes.ts'
import { addShadowRoutes, type ShadowRouteDeps } from './policies/shadow-routes.ts'
import {
  addReconciliationRoutes,
  type ReconciliationRouteDeps,
} from './reconciliation/reconciliation-routes.ts'
import { addRetentionRoutes } from './retention/retention-routes.ts'
import { addCredentialRoutes, type CredentialRouteDeps } from './tenants/credential-routes.ts'
import type { ManageDeps } from './tenants/manage-tenants.ts'
import { addOverviewRoutes, type OverviewRouteDeps } from './tenants/overview-routes.ts'
import type { RewrapDeps } from './tenants/rewrap.ts'
import { addSecretRoutes } from './tenants/secret-routes.ts'
import { addStaleSecretRoutes, type StaleSecretDeps } from './tenants/stale-secret-routes.ts'
import { addTenantRoutes } from './tenants/tenant-routes.ts'

export type ConsoleDeps = ManageDeps &
  CredentialRouteDeps &
  RewrapDeps &
  ExplainDeps &
  StaleSecretDeps &
  EraseRouteDeps &
  ReconciliationRouteDeps &
  DeliveryDeps &
  RulePerformanceDeps &
  SignalRouteDeps &
  AlertRouteDeps &
  OverviewRouteDeps &
  PolicyRouteDeps &
  BacktestRouteDeps &
  ShadowRouteDeps &
  AnalystDeps &
  Omit<TokenCheckDeps, 'metrics'> & {
    /** The wall clock; `nowMs` is the monotonic one. */
    wallMs: () => number
  }

const adminBodyBytesMax = 1024 * 1024

/** Builds the server; it does not listen yet. */
export async function createConsoleApp(
  deps: ConsoleDeps,
  http: HttpServerOptions,
): Promise<FastifyInstance> {
  const app = createHttpServer({ ...http, bodyBytesMax: adminBodyBytesMax })
  const token = createTokenCheck({ ...deps, metrics: http.metrics })
  app.addHook('onClose', token.close)
  await app.register(swagger, {
    // The server's address is relative, which it cannot strip.
    stripBasePath: false,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Device intelligence: admin API',
        version: '1.0.0',
        description: 'What operators do: tenants, credentials, webhooks, policies, dispositions.',
      },
      servers: [{ url: '../..' }],
      components: { securitySchemes: { admin: { type: 'http', scheme: 'bearer' } } },
      security: [{ admin: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: (made) =>
      'openapiObject' in made
        ? describeAnswers(made.openapiObject, '/admin/v1')
        : made.swaggerObject,
  })
  await app.register(
    async (scope) => {
      scope.setValidatorCompiler(problemValidatorCompiler)
      scope.setSerializerCompiler(serializerCompiler)
      // Inside its own scope: a caller without the token cannot tell which routes exist.
      await scope.register(async (admin) => {
        admin.addHook('onRequest', token.check)
        const routes = admin.withTypeProvider<ZodTypeProvider>() as ConsoleApp
        addTenantRoutes(routes, deps)
        addStaleSecretRoutes(routes, deps)
        addCredentialRoutes(routes, deps)
        addAlertRoutes(routes, deps)
        addDeliveryRoutes(routes, deps)
        addOverviewRoutes(routes, deps)
        addReconciliationRoutes(routes, deps)
        addPolicyRoutes(routes, deps)
        addBacktestRoutes(routes, deps)
        addShadowRoutes(routes, deps)
        addEventRoutes(routes, deps)
        addSignalRoutes(routes, deps)
        addRulePerformanceRoutes(routes, deps)
        addSecretRoutes(routes, deps)
        addRetentionRoutes(routes, deps)
        addErasureRoutes(routes, deps)
        addAnalystRoutes(routes, deps)
      })
      scope.get('/openapi.json', { schema: { hide: true } as object }, async (_, reply) =>
        // The document has no response schema, so it is serialized here.
        reply.type('application/json; charset=utf-8').send(JSON.stringify(app.swagger())),
      )
    },
    { prefix: '/admin/v1' },
  )
  return app
}
