/**
 * The backtest of a tenant, which goes on while other pages are open: it belongs to the window, not
 * to a page. It ends when it is cancelled or the window is closed.
 */
import { useSyncExternalStore } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'

type Line = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/backtest', 'post'>
export type Progress = Extract<Line, { progress: unknown }>['progress']
export type Report = Extract<Line, { report: unknown }>['report']

export type Backtest = {
  /** The text of the document that it runs with. */
  text: string
  progress: Progress | null
  report: Report | null
  error: unknown
  running: boolean
}

const runs = new Map<string, Backtest>()
const stops = new Map<string, AbortController>()
const listeners = new Set<() => void>()

function change(tenant: string, next: Backtest | null): void {
  if (next === null) runs.delete(tenant)
  else runs.set(tenant, next)
  for (const listener of listeners) listener()
}

export function useBacktest(tenant: string): Backtest | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => runs.get(tenant) ?? null,
  )
}

export function cancelBacktest(tenant: string): void {
  stops.get(tenant)?.abort()
  change(tenant, null)
}

/** @param since leaves out events that were received before it */
export async function startBacktest(
  tenant: string,
  { text, since }: { text: string; since: string | null },
): Promise<void> {
  stops.get(tenant)?.abort()
  const stop = new AbortController()
  stops.set(tenant, stop)
  let run: Backtest = { text, progress: null, report: null, error: null, running: true }
  const show = (more: Partial<Backtest>) => {
    run = { ...run, ...more }
    if (stops.get(tenant) === stop && !stop.signal.aborted) change(tenant, run)
  }
  show({})
  try {
    const query = since === null ? {} : { since }
    const lines = await ok(
      api.POST('/admin/v1/tenants/{tenant_id}/policy/backtest', {
        params: { path: { tenant_id: tenant }, query },
        body: JSON.parse(text) as unknown,
        parseAs: 'stream',
        signal: stop.signal,
      }),
    )
    for await (const line of linesOf(lines as unknown as ReadableStream<Uint8Array>)) {
      if ('progress' in line) show({ progress: line.progress })
      else if ('report' in line) show({ report: line.report })
      else show({ error: toProblem(line.problem) })
    }
    if (run.report === null && run.error === null) show({ error: brokeOff })
  } catch (error) {
    show({ error })
  } finally {
    show({ running: false })
  }
}

const brokeOff = new ApiProblem({
  status: 0,
  code: 'unreachable',
  detail: 'The backtest broke off before its report. Start it again.',
  requestId: null,
})

const toProblem = (problem: Record<string, unknown>): ApiProblem =>
  new ApiProblem({
    status: 503,
    code: String(problem.code),
    detail: String(problem.detail),
    requestId: typeof problem.request_id === 'string' ? problem.request_id : null,
  })

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Line, void> {
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
