/**
 * Work on a tenant's stored events that answers in lines, such as a backtest. It goes on while other
 * pages are open: it belongs to the window, not to a page. It ends when it is cancelled or the
 * window is closed.
 */
import { useSyncExternalStore } from 'react'
import { ApiProblem } from '../../api/client.ts'

type AnyLine = { progress: object } | { report: object } | { problem: Record<string, unknown> }
type ProgressOf<Line> = Extract<Line, { progress: unknown }>['progress']
type ReportOf<Line> = Extract<Line, { report: unknown }>['report']

export type TenantRun<Request, Line> = {
  /** What it runs with. */
  request: Request
  progress: ProgressOf<Line> | null
  report: ReportOf<Line> | null
  error: unknown
  running: boolean
}

/**
 * Creates the runs of one kind: one at a time for each tenant.
 * @param noun as in "The backtest broke off"
 * @param send asks the server, whose answer is a stream although the client's types say a line
 */
export function createRuns<Line extends AnyLine, Request>(
  noun: string,
  send: (tenant: string, request: Request, signal: AbortSignal) => Promise<unknown>,
) {
  const runs = new Map<string, TenantRun<Request, Line>>()
  const stops = new Map<string, AbortController>()
  const listeners = new Set<() => void>()
  const change = (tenant: string, next: TenantRun<Request, Line> | null): void => {
    if (next === null) runs.delete(tenant)
    else runs.set(tenant, next)
    for (const listener of listeners) listener()
  }
  const listen = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    useRun: (tenant: string): TenantRun<Request, Line> | null =>
      useSyncExternalStore(listen, () => runs.get(tenant) ?? null),
    cancel: (tenant: string): void => {
      stops.get(tenant)?.abort()
      change(tenant, null)
    },
    start: async (tenant: string, request: Request): Promise<void> => {
      stops.get(tenant)?.abort()
      const stop = new AbortController()
      stops.set(tenant, stop)
      let run: TenantRun<Request, Line> = {
        request,
        progress: null,
        report: null,
        error: null,
        running: true,
      }
      const show = (more: Partial<TenantRun<Request, Line>>) => {
        run = { ...run, ...more }
        if (stops.get(tenant) === stop && !stop.signal.aborted) change(tenant, run)
      }
      show({})
      try {
        const stream = (await send(tenant, request, stop.signal)) as ReadableStream<Uint8Array>
        for await (const line of linesOf<AnyLine>(stream)) {
          if ('progress' in line) show({ progress: line.progress as ProgressOf<Line> })
          else if ('report' in line) show({ report: line.report as ReportOf<Line> })
          else show({ error: toProblem(line.problem) })
        }
        if (run.report === null && run.error === null) show({ error: toBrokeOff(noun) })
      } catch (error) {
        show({ error })
      } finally {
        show({ running: false })
      }
    },
  }
}

const toBrokeOff = (noun: string) =>
  new ApiProblem({
    status: 0,
    code: 'unreachable',
    detail: `The ${noun} broke off before its report. Start it again.`,
    requestId: null,
  })

const toProblem = (problem: Record<string, unknown>): ApiProblem =>
  new ApiProblem({
    status: 503,
    code: String(problem.code),
    detail: String(problem.detail),
    requestId: typeof problem.request_id === 'string' ? problem.request_id : null,
  })

async function* linesOf<Line>(stream: ReadableStream<Uint8Array>): AsyncGenerator<Line, void> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
    rest = done ? '' : (lines.pop() ?? '')
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Line
    if (done) return
  }
}
