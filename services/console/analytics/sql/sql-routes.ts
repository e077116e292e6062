/**
 * SQL over the analytics views, as an analyst of the tenant and with an analyst's limits; the
 * schema of the views, and the cookbook. The audit log has each query before it runs.
 */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { z } from 'zod'
import {
  sqlQueries,
  sqlQueryMaxMs,
  sqlRowsBytesMax,
  sqlRowsMax,
} from '#shared/core/base/limits/analytics.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { describeUnknownPath } from '#shared/core/telemetry/signal-warnings.ts'
import {
  AnalystQueryError,
  type AnalystStatement,
  FormatClauseError,
  queryCsv,
  queryRows,
  RowTooLargeError,
  tooManyQueries,
} from '#shared/io/analytics/analyst-query.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { listAnalyticsViews } from '#shared/io/analytics/analytics-schema-store.ts'
import { readCookbook } from '#shared/io/analytics/cookbook.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { createTenantSemaphore, type TenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../../http/admin-app.ts'
import { tenantParams } from '../../http/schemas.ts'
import { requireTenant } from '../../tenants/manage-tenants.ts'
import { needsServer, requireServer } from '../manage-analysts.ts'
import { type ConsoleAnalystDeps, createConsoleAnalyst } from './console-analyst.ts'
import { cookbookSchema, sqlBody, sqlRowsSchema, viewsSchema } from './sql-schemas.ts'

/** `nowMs` is the monotonic clock. */
type SqlRouteDeps = ConsoleAnalystDeps & { nowMs: () => number }

export function addSqlRoutes(app: ConsoleApp, deps: SqlRouteDeps): void {
  addQueryRoute(app, deps)
  app.get(
    '/sql/views',
    {
      schema: {
        operationId: 'listViews',
        tags: ['SQL'],
        summary: 'The views that queries may read, with their columns',
        response: { 200: viewsSchema },
      },
    },
    async ({ principal }) => {
      const database = toAnalyticsDatabase(deps.analysts.database)
      const data = await listAnalyticsViews(deps.analysts.clickhouse, database).catch(unreadable)
      return { database, data, needs_server: needsServer(deps, tenantsOf(principal)) }
    },
  )
  app.get(
    '/sql/cookbook',
    {
      schema: {
        operationId: 'listCookbook',
        tags: ['SQL'],
        summary: 'Questions of fraud teams, each with the query that answers it',
        response: { 200: cookbookSchema },
      },
    },
    async () => ({ data: readCookbook() }),
  )
}

function addQueryRoute(app: ConsoleApp, deps: SqlRouteDeps): void {
  const analyst = createConsoleAnalyst(deps)
  const semaphore = createTenantSemaphore(sqlQueries)
  app.post(
    '/tenants/:tenant_id/sql',
    {
      schema: {
        operationId: 'runQuery',
        tags: ['SQL'],
        summary: 'Run a query over the analytics views of a tenant',
        description:
          'It runs as an analyst of the tenant: it reads the rows of this tenant alone, changes ' +
          'nothing, and has the limits of analysts. It ends when the connection does. On the ' +
          'embedded engine of the local stack, where this is no wall, only operators who may see ' +
          'all tenants run queries. For an operator who is limited to some tenants a query is a ' +
          'SELECT, and what ClickHouse read for it is not said: that counts rows of other tenants.',
        params: tenantParams,
        body: sqlBody,
        problems: ['query_failed', 'analysts_not_possible', 'analysts_need_a_server'],
        response: {
          200: {
            description: 'The rows, or a CSV of all of them.',
            content: {
              'application/json': { schema: sqlRowsSchema },
              'text/csv': { schema: z.string() },
            },
          },
        },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }, reply) => {
      const scope = tenantsOf(principal)
      requireServer(deps, scope)
      await requireTenant(deps.postgres, tenantId)
      const signal = await beginQuery(semaphore, tenantId, reply.raw)
      const { sql, format } = body
      const after = { sql, parameters: body.parameters, format }
      const entry = { actor: actorOf(principal), tenantId, action: 'sql.queried' as const, after }
      await insertAudit(deps.postgres, entry)
      const startedMs = deps.nowMs()
      const isLimited = scope !== 'all'
      const statement: AnalystStatement = {
        sql,
        isSelect: isLimited,
        parameters: { ...body.parameters, tenant: tenantId },
      }
      if (format !== 'rows') {
        const form = format === 'csv' ? 'plain' : format
        const csv = await analyst
          .signedIn(tenantId, (login) => queryCsv(login, statement, { form, signal }))
          .catch((error: unknown) => refuse(error, signal))
        // Before the answer begins, so that it can still be refused.
        const first = await csv.next().catch((error: unknown) => refuse(error, signal))
        reply.header('content-type', 'text/csv; charset=utf-8')
        // A CSV is no answer to be written by the schema.
        return reply.send(Readable.from(afterFirst(first, csv)) as never)
      }
      const bounds = { rowsMax: sqlRowsMax, bytesMax: sqlRowsBytesMax, signal }
      const { read, ...found } = await analyst
        .signedIn(tenantId, (login) => queryRows(login, statement, bounds))
        .catch((error: unknown) => refuse(error, signal))
      const durationMs = Math.round(deps.nowMs() - startedMs)
      return {
        ...found,
        hints: findHints(body.parameters),
        // The engine counts rows before it applies the row policy.
        rows_read: isLimited ? null : (read?.rows ?? null),
        bytes_read: isLimited ? null : (read?.bytes ?? null),
        duration_ms: durationMs,
      }
    },
  )
}

async function* afterFirst(
  first: IteratorResult<string, void>,
  rest: AsyncGenerator<string, void>,
): AsyncGenerator<string, void> {
  if (first.done) return
  yield first.value
  yield* rest
}

/**
 * Acquires a slot until the response is closed. Its time is bounded also because a response that is
 * behind another one on a lost connection never closes.
 * @returns what ends the query: it aborts when the slot is free again
 * @throws Problem unavailable when there is no slot in time, or the client has left
 */
async function beginQuery(
  semaphore: TenantSemaphore,
  tenantId: string,
  response: ServerResponse,
): Promise<AbortSignal> {
  const permit = await semaphore.acquire(tenantId)
  if (permit === null) throw unavailable('The tenant has too many queries in flight.')
  const stop = new AbortController()
  const end = () => {
    clearTimeout(timer)
    permit.release()
    stop.abort()
  }
  const timer = setTimeout(end, sqlQueryMaxMs)
  // The client can have left before this, and then there is no further event.
  if (!response.destroyed) response.once('close', end)
  else end()
  if (stop.signal.aborted) throw ended()
  return stop.signal
}

const ended = () => unavailable('The query has ended: its time is over, or its client has left.')

const unreadable = (error: unknown): never => {
  throw unavailable('ClickHouse cannot be read at the moment.', toLoggable(error))
}

/** Statuses of a ClickHouse that is busy, and of an address whose engine cannot be reached. */
const busyStatuses = [502, 503, 504]

/** @throws Problem query_failed with the engine's own words, or unavailable */
function refuse(error: unknown, signal: AbortSignal): never {
  if (error instanceof Problem) throw error
  if (signal.aborted) throw ended()
  if (error instanceof RowTooLargeError) throw new Problem('query_failed', error.message)
  if (error instanceof FormatClauseError) {
    throw new Problem('query_failed', 'Leave FORMAT out: a query is answered as rows or as a CSV.')
  }
  if (!(error instanceof AnalystQueryError) || error.engineCode === 0) unreadable(error)
  const { engineCode, message, status } = error as AnalystQueryError
  const isBusy = busyStatuses.includes(status) || engineCode === tooManyQueries
  if (isBusy) throw unavailable(message, error)
  throw new Problem('query_failed', addHint(message))
}

/** What people meet first, with what to write instead. */
const hints: readonly [RegExp, string][] = [
  [
    /\bDynamic\b/,
    'Signals of events have no fixed type: read them from typed_events, or cast them, as in ' +
      'signals.network.vpn_active::Nullable(Bool).',
  ],
  [
    /Cannot convert string '[\d-]+T[\d:.]+Z' to type DateTime/,
    "Write parseDateTime64BestEffort('2026-11-25T14:03:00.000Z', 3), or '2026-11-25 14:03:00.000'.",
  ],
]

const addHint = (message: string): string =>
  [message, ...hints.flatMap(([form, hint]) => (form.test(message) ? [hint] : []))].join(' ')

/** A parameter named `signal` is category.signal. */
function findHints({ signal }: Record<string, string>): string[] {
  const fault = signal === undefined ? null : describeUnknownPath(signal)
  return fault === null ? [] : [fault]
}
