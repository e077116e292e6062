/** The backtest of a tenant, which goes on while other pages are open. */
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { createRuns } from './tenant-run.ts'

type Line = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/backtest', 'post'>
export type Report = Extract<Line, { report: unknown }>['report']

type BacktestRequest = {
  /** The text of the document that it runs with. */
  text: string
  /** Leaves out events that were received before it. */
  since: string | null
}

export const {
  useRun: useBacktest,
  start: startBacktest,
  cancel: cancelBacktest,
} = createRuns<Line, BacktestRequest>('backtest', (tenant, { text, since }, signal) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/policy/backtest', {
      params: { path: { tenant_id: tenant }, query: since === null ? {} : { since } },
      body: JSON.parse(text) as unknown,
      parseAs: 'stream',
      signal,
    }),
  ),
)
