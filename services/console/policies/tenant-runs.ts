/**
 * Long work on one tenant's stored events that a client waits for: one run at a time for each
 * tenant over all consoles, and few in one console, so that the engine stays free for urgent
 * queries. A run answers in lines, and ends when its client disconnects.
 */
import { setTimeout } from 'node:timers/promises'
import { Problem, toProblemBody, unavailable } from '#shared/core/http/problem.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { toProblem } from '#shared/io/http/http-server.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Log } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'

export type TenantRunDeps = {
  leases: Leases
  log: Log
}

type TenantRequest = { tenantId: string; requestId: string }

type RunKind<Request, Line> = {
  /** As in "A backtest of tenant acme is running already"; it also names the lease. */
  noun: string
  outcomes: { inc: (labels: { outcome: string }) => void }
  /** Runs of one console at once. */
  runningMax: number
  /** Whether it is the line after which the client may start the next run. */
  isLast: (line: Line) => boolean
  /**
   * @param run.signal aborts when the client disconnects or the lease is lost
   * @param run.lease for all that it writes
   */
  toLines: (
    request: Request,
    run: { signal: AbortSignal; lease: Lease },
  ) => AsyncGenerator<Line, void>
}

type TenantRun<Line> = {
  /** Progress, then the report or a problem as the last line. */
  lines: () => AsyncGenerator<Line, void>
  /** Cancels it. Call it in the end in any case. */
  cancel: () => void
}

export type TenantRuns<Request, Line> = {
  /** @throws Problem conflict when one runs already for the tenant; unavailable */
  start: (request: Request) => Promise<TenantRun<Line>>
  /** Cancels all that are running. */
  stop: () => void
}

/** How long a run waits for another one to end, and how often it looks. */
const placeWaitMs = 5_000
const placePollMs = 100

/** How long the last line waits for the release of the lease: Postgres may be unavailable. */
const releaseMaxMs = 1_000

/** Creates the runs of one console. */
export function createTenantRuns<Request extends TenantRequest, Line extends object>(
  deps: TenantRunDeps,
  kind: RunKind<Request, Line>,
): TenantRuns<Request, Line> {
  const { noun, outcomes, runningMax } = kind
  const running = new Set<AbortController>()
  const count = (outcome: string) => outcomes.inc({ outcome })
  return {
    start: async (request) => {
      const isFull = () => running.size >= runningMax
      for (let waitedMs = 0; isFull() && waitedMs < placeWaitMs; waitedMs += placePollMs) {
        await setTimeout(placePollMs)
      }
      if (isFull()) {
        count('refused')
        throw unavailable(`Other ${noun}s are running here; try again later.`)
      }
      const abort = new AbortController()
      running.add(abort)
      let held: Held
      try {
        const name = { tenantId: request.tenantId, noun }
        held = await acquire(deps, name, abort, () => running.delete(abort))
      } catch (error) {
        running.delete(abort)
        count('refused')
        throw error
      }
      return {
        lines: () => streamLines(deps, kind, request, held),
        cancel: () => abort.abort(),
      }
    },
    stop: () => {
      for (const abort of running) abort.abort()
    },
  }
}

/** The tenant's lease, which `abort` releases. */
type Held = { lease: Lease; abort: AbortController; released: Promise<void> }

/** Takes the tenant's lease, and releases it once `abort` has been called. */
async function acquire(
  { leases }: TenantRunDeps,
  { tenantId, noun }: { tenantId: string; noun: string },
  abort: AbortController,
  onEnd: () => void,
): Promise<Held> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { signal } = abort
  const lease = await new Promise<Lease>((resolve, reject) => {
    withLease(leases, `${noun} ${tenantId}`, async (taken) => {
      resolve(taken)
      await new Promise<void>((ended) => {
        if (signal.aborted) ended()
        else signal.addEventListener('abort', () => ended(), { once: true })
      })
      return true
    })
      .then((acquired) => {
        if (acquired !== null) return
        const detail = `A ${noun} of tenant ${tenantId} is running already.`
        reject(new Problem('conflict', detail))
      }, reject)
      .finally(() => {
        onEnd()
        release()
      })
  })
  return { lease, abort, released }
}

async function* streamLines<Request extends TenantRequest, Line extends object>(
  deps: TenantRunDeps,
  { outcomes, isLast, toLines }: RunKind<Request, Line>,
  request: Request,
  { lease, abort, released }: Held,
): AsyncGenerator<Line, void> {
  let outcome = 'cancelled'
  // Release before the last line: the client may start the next run after it.
  const release = async () => {
    abort.abort()
    await within(released, releaseMaxMs)
  }
  try {
    const signal = AbortSignal.any([abort.signal, lease.signal])
    for await (const line of toLines(request, { signal, lease })) {
      if (isLast(line)) await release()
      yield line
    }
    outcome = 'done'
  } catch (error) {
    if (abort.signal.aborted) return
    outcome = 'failed'
    const cause = unavailable('The stored events cannot be read at the moment.', toLoggable(error))
    const problem = toProblem(error instanceof Problem ? error : cause, deps.log)
    await release()
    yield { problem: toProblemBody(problem, request.requestId) } as object as Line
  } finally {
    abort.abort()
    outcomes.inc({ outcome })
  }
}

/** Each line as JSON, for the body of an answer. */
export async function* toJsonLines(lines: AsyncIterable<object>): AsyncGenerator<string, void> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`
}
