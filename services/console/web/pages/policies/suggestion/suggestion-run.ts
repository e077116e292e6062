/** The suggestion of a tenant, which goes on while other pages are open. */
import { type AnswerOf, api, ok } from '../../../api/client.ts'
import { createRuns } from '../tenant-run.ts'

type Line = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy/suggestion', 'post'>
export type Report = Extract<Line, { report: unknown }>['report']
export type Suggestion = NonNullable<Report['suggestion']>

export type SuggestionRequest = {
  /** Sessions of so many days. */
  days: number
  /** What may go beside weights. */
  caps: boolean
  floors: boolean
}

const toFlag = (isOn: boolean): 'true' | 'false' => (isOn ? 'true' : 'false')

export const {
  useRun: useSuggestion,
  start: startSuggestion,
  cancel: cancelSuggestion,
} = createRuns<Line, SuggestionRequest>('suggestion', (tenant, { days, caps, floors }, signal) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/policy/suggestion', {
      params: {
        path: { tenant_id: tenant },
        query: { days, caps: toFlag(caps), floors: toFlag(floors) },
      },
      parseAs: 'stream',
      signal,
    }),
  ),
)
