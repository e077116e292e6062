/** Why an event has its score, as the admin API explains it. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type Explanation = AnswerOf<'/admin/v1/events/{event_id}/explanation', 'get'>

/** It changes only with the alerts of its session, so it stays fresh for a while. */
const staleMs = 60_000

export const explanationQuery = (eventId: string) =>
  queryOptions({
    queryKey: ['explanation', eventId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/events/{event_id}/explanation', {
          params: { path: { event_id: eventId } },
        }),
      ),
    staleTime: staleMs,
  })
