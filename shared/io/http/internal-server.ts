/**
 * The internal listener of a process: `/healthz` (alive), `/readyz` (ready to work) and `/metrics`
 * (Prometheus text). It is a separate server, so it answers when the public one is full.
 * `/readyz?exclude=NAME` counts a check as a warning, for balancers whose traffic does not need it.
 * `/metrics` has the outcome of every check as well, so that an alert rule can tell what fails.
 */
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { internalConnectionsMax } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { Listen } from '#shared/io/process/config.ts'
import type { Lifecycle } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics, MetricsPage } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'
import { toAddress } from './client-address.ts'
import { endUnreadRequests, listen, toProblem } from './http-server.ts'
import { sendProblem, toRequestId } from './problem-answers.ts'
import { createRefusalLog } from './refusal-log.ts'

/** One dependency's state for `/readyz`: null when it works, else what is missing. */
export type ReadyCheck = () => Promise<string | null> | string | null

type InternalOptions = {
  log: Log
  metrics: Pick<Metrics, 'gauge'> & { registry: MetricsPage }
  /** Named checks of what this process needs to do its job. */
  readyChecks: Record<string, ReadyCheck>
  /** Checks whose failure is shown to operators while the process stays ready. */
  warnings?: Record<string, ReadyCheck>
  stopping: () => boolean
}

/** How long a request may delay the end of the process. */
const closeMs = 250
/** How long a client may take to send a request, in ms. */
const requestTimeoutMs = 5_000
const checkLimitMs = 1_000

/** Creates the server; it does not listen yet. */
export function createInternalServer(options: InternalOptions): FastifyInstance {
  const { log, metrics, readyChecks, stopping } = options
  countFailing(options)
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: (request) => toRequestId(request.headers['x-request-id']),
    forceCloseConnections: 'idle',
    requestTimeout: requestTimeoutMs,
    http: { headersTimeout: requestTimeoutMs, connectionsCheckingInterval: 1_000 },
  })
  app.server.maxConnections = internalConnectionsMax
  const refusals = createRefusalLog(log)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
  })
  endUnreadRequests(app)
  app.setErrorHandler((error, request, reply) => sendProblem(reply, toProblem(error, request.log)))
  app.setNotFoundHandler((request, reply) => {
    const problem = new Problem('not_found', 'There is nothing at this address.')
    const { id: requestId, method, ip } = request
    const source = toAddress(ip) ?? 'unknown'
    refusals({ requestId, status: 404, code: problem.code, method, route: 'unknown', source })
    return sendProblem(reply, problem)
  })
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get<{ Querystring: { exclude?: string | string[] } }>('/readyz', async (request, reply) => {
    const checks = [runChecks(readyChecks), runChecks(options.warnings ?? {})] as const
    const [found, warnings] = await Promise.all(checks)
    const excluded = [request.query.exclude ?? []].flat()
    const missing: Record<string, string> = {}
    for (const [name, fault] of Object.entries(found)) {
      if (excluded.includes(name)) warnings[name] = fault
      else missing[name] = fault
    }
    if (stopping()) missing.process = 'is stopping'
    const ready = isEmpty(missing)
    const more = isEmpty(warnings) ? {} : { warnings }
    return reply
      .code(ready ? 200 : 503)
      .send(ready ? { status: 'ready', ...more } : { status: 'not_ready', missing, ...more })
  })
  app.get('/metrics', async (_request, reply) =>
    reply
      .header('content-type', metrics.registry.contentType)
      .send(await metrics.registry.metrics()),
  )
  return app
}

/**
 * Opens the internal listener of a process. It closes last, so that readiness and metrics remain
 * until the process has drained. Call it before the other steps of stopping are registered.
 * @returns its URL
 * @throws when the address is in use or cannot be listened on
 */
export async function serveInternally(
  options: Omit<InternalOptions, 'stopping'> & { lifecycle: Lifecycle; address: Listen },
): Promise<string> {
  const { lifecycle, address, ...more } = options
  const app = createInternalServer({ ...more, stopping: lifecycle.stopping })
  lifecycle.onStop('internal listener', async () => {
    const cut = setTimeout(() => app.server.closeAllConnections(), closeMs)
    await app.close()
    clearTimeout(cut)
  })
  return await listen(app, address)
}

/** @returns the results of the checks that failed */
async function runChecks(checks: Record<string, ReadyCheck>): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  const run = async ([name, check]: [string, ReadyCheck]) => {
    const fault = await withLimit(check)
    if (fault !== null) found[name] = fault
  }
  await Promise.all(Object.entries(checks).map(run))
  return found
}

/** A gauge of each check of `/readyz`, warnings included. They run once more at every scrape. */
function countFailing({ metrics, readyChecks, warnings = {} }: InternalOptions): void {
  const names = Object.keys({ ...readyChecks, ...warnings })
  metrics.gauge('di_check_failing', '1 while this check of /readyz fails or warns', {
    labels: ['check'],
    async collect() {
      const found = await Promise.all([readyChecks, warnings].map(runChecks))
      const failing = Object.assign({}, ...found) as object
      for (const check of names) this.set({ check }, Object.hasOwn(failing, check) ? 1 : 0)
    },
  })
}

const isEmpty = (record: object): boolean => Object.keys(record).length === 0

/** A check that hangs counts as a dependency that does not answer. */
async function withLimit(check: ReadyCheck): Promise<string | null> {
  try {
    const fault = Promise.resolve(check())
    return (await within(fault, checkLimitMs)) ? await fault : 'does not answer'
  } catch {
    return 'cannot be reached'
  }
}
