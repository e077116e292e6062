/**
 * Long work on one tenant's stored events that a client waits for: one run at a time for each
 * tenant over all consoles, and few in one console, so that the engine stays free for urgent
 * queries. A run answers in lines, and ends when its client disconnects.
 */
import { setTimeout } from 'node:timers/promises'
import { Problem, toProblemBody, unavailable } from '#shared/core/http/problem.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { toProblem } from '#shared/io/http/http-server.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'

export type TenantRunDeps = {
  /** Connections for work that holds a lock. */
  locks: Locks
  log: Log
}

type TenantRequest = { tenantId: string; requestId: string }

type RunKind<Request, Line> = {
  /** As in "A backtest of tenant acme is running already"; it also names the lock. */
  noun: string
  outcomes: { inc: (labels: { outcome: string }) => void }
  /** Runs of one console at once. */
  runningMax: number
  /** Whether it is the line after which the client may start the next run. */
  isLast: (line: Line) => boolean
  /** @param signal aborts when the client disconnects */
  toLines: (request: Request, signal: AbortSignal) => AsyncGenerator<Line, void>
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

/** How long the last line waits for the release of the lock: Postgres may be unavailable. */
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
      let released: Promise<void>
      try {
        const lock = { tenantId: request.tenantId, noun }
        released = (await acquireLock(deps, lock, abort.signal, () => running.delete(abort)))
          .released
      } catch (error) {
        running.delete(abort)
        count('refused')
        throw error
      }
      return {
        lines: () => streamLines(deps, kind, request, { abort, released }),
        cancel: () => abort.abort(),
      }
    },
    stop: () => {
      for (const abort of running) abort.abort()
    },
  }
}

/**
 * Acquires the tenant's lock and releases it when the signal aborts.
 * @returns a promise that resolves once the lock is released
 */
async function acquireLock(
  { locks }: TenantRunDeps,
  { tenantId, noun }: { tenantId: string; noun: string },
  signal: AbortSignal,
  onEnd: () => void,
): Promise<{ released: Promise<void> }> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await new Promise<void>((resolve, reject) => {
    tryNamedLock(locks, `${noun} ${tenantId}`, async () => {
      resolve()
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
  return { released }
}

/** The tenant's lock, which `abort` releases. */
type Lock = { abort: AbortController; released: Promise<void> }

async function* streamLines<Request extends TenantRequest, Line extends object>(
  deps: TenantRunDeps,
  { outcomes, isLast, toLines }: RunKind<Request, Line>,
  request: Request,
  { abort, released }: Lock,
): AsyncGenerator<Line, void> {
  let outcome = 'cancelled'
  // Release before the last line: the client may start the next run after it.
  const release = async () => {
    abort.abort()
    await within(released, releaseMaxMs)
  }
  try {
    for await (const line of toLines(request, abort.signal)) {
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
