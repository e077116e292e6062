/** How answers of the admin API are kept: fresh for seconds, tried again only when that can help. */
import { ChangingQueryClient } from './changing-query-client.ts'
import { ApiProblem } from './client.ts'

const staleMs = 10_000
const retriesMax = 2
/** How soon a read that failed by an outage is tried again, so that a page comes back by itself. */
const outageMs = 4_000

/** Without an answer, or with one that says that a part of the service is away. */
const isOutage = (error: unknown): boolean =>
  error instanceof ApiProblem && (error.status === 0 || error.status >= 500)

export const queryClient = new ChangingQueryClient({
  defaultOptions: {
    queries: {
      staleTime: staleMs,
      refetchOnWindowFocus: true,
      // A refusal stays one; an outage passes.
      retry: (failures, error) =>
        failures < retriesMax && error instanceof ApiProblem && error.status >= 500,
      refetchInterval: ({ state }) =>
        state.status === 'error' && isOutage(state.error) ? outageMs : false,
    },
    mutations: { retry: false },
  },
})
