/**
 * The console's server: the admin API under `/admin/v1` behind its bearer token, its OpenAPI
 * document, and the health routes that every process has. Built from its dependencies, so tests can
 * run it on any databases.
 */
import swagger from '@fastify/swagger'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import {
  jsonSchemaTransform,
  serializerCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod'
import type { Alert, Disposition } from '#shared/core/alert-rules.ts'
import { createHttpServer, type HttpServerOptions } from '#shared/io/http-server.ts'
import type { TenantProjection } from '#shared/io/tenant-projection.ts'
import type { UnknownSignalStore } from '#shared/io/unknown-signal-store.ts'
import { createTokenCheck, type TokenCheckDeps } from './check-token.ts'
import type { ExplainDeps } from './explain-event.ts'
import type { NewCredentials } from './local-stack.ts'
import type { AnalystDeps } from './manage-analysts.ts'
import type { DeliveryDeps } from './manage-deliveries.ts'
import type { ManageDeps } from './manage-tenants.ts'
import { describeAnswers } from './openapi-answers.ts'
import type { RewrapDeps } from './rewrap.ts'
import type { RotationDeps } from './rotation.ts'
import { addAlertRoutes } from './routes/alerts.ts'
import { addAnalystRoutes } from './routes/analysts.ts'
import { addBacktestRoutes, type BacktestRouteDeps } from './routes/backtests.ts'
import { addCredentialRoutes } from './routes/credentials.ts'
import { addDeliveryRoutes } from './routes/deliveries.ts'
import { addErasureRoutes, type EraseRouteDeps } from './routes/erasures.ts'
import { addEventRoutes } from './routes/events.ts'
import { addLearningRoutes, type LearningDeps } from './routes/learning.ts'
import { addLedgerRoutes, type LedgerRouteDeps } from './routes/ledger.ts'
import { addOverviewRoutes } from './routes/overview.ts'
import { addPolicyRoutes } from './routes/policies.ts'
import { addRetentionRoutes } from './routes/retention.ts'
import { addRetiredUseRoutes, type RetiredUseDeps } from './routes/retired-use.ts'
import { addSecretRoutes } from './routes/secrets.ts'
import { addShadowRoutes, type ShadowRouteDeps } from './routes/shadow.ts'
import { addSignalRoutes } from './routes/signals.ts'
import { addTenantRoutes } from './routes/tenants.ts'
import { problemValidatorCompiler } from './validation.ts'

export type ConsoleDeps = ManageDeps &
  RotationDeps &
  RewrapDeps &
  ExplainDeps &
  RetiredUseDeps &
  EraseRouteDeps &
  LedgerRouteDeps &
  DeliveryDeps &
  LearningDeps &
  BacktestRouteDeps &
  ShadowRouteDeps &
  AnalystDeps &
  Omit<TokenCheckDeps, 'metrics'> & {
    projection: Pick<TenantProjection, 'listEdges'>
    /** Called with what a rotation made, before the caller has it. */
    onRotated?: (rotated: NewCredentials) => Promise<void>
    setDisposition: (change: {
      alertId: string
      disposition: Disposition
      note: string | null
      actor: string
    }) => Promise<Alert | null>
    listUnknownSignals: UnknownSignalStore['listUnknownSignals']
    countLeftOut: UnknownSignalStore['countLeftOut']
    /** The wall clock; `nowMs` never goes back. */
    wallMs: () => number
  }

export type ConsoleApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>

/** Who acts with the admin token, in the audit log. */
export const adminActor = 'admin'

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
      // Inside its scope, because whoever has not shown the token learns nothing about the routes.
      await scope.register(async (admin) => {
        admin.addHook('onRequest', token.check)
        const routes = admin.withTypeProvider<ZodTypeProvider>() as ConsoleApp
        addTenantRoutes(routes, deps)
        addRetiredUseRoutes(routes, deps)
        addCredentialRoutes(routes, deps)
        addAlertRoutes(routes, deps)
        addDeliveryRoutes(routes, deps)
        addOverviewRoutes(routes, deps)
        addLedgerRoutes(routes, deps)
        addPolicyRoutes(routes, deps)
        addBacktestRoutes(routes, deps)
        addShadowRoutes(routes, deps)
        addEventRoutes(routes, deps)
        addSignalRoutes(routes, deps)
        addLearningRoutes(routes, deps)
        addSecretRoutes(routes, deps)
        addRetentionRoutes(routes, deps)
        addErasureRoutes(routes, deps)
        addAnalystRoutes(routes, deps)
      })
      scope.get('/openapi.json', { schema: { hide: true } as object }, async (_, reply) =>
        // Serialised here: the document has no schema of its own to be written through.
        reply.type('application/json; charset=utf-8').send(JSON.stringify(app.swagger())),
      )
    },
    { prefix: '/admin/v1' },
  )
  return app
}
