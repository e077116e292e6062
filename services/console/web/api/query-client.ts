/** How answers of the admin API are kept: fresh for seconds, tried again only when that can help. */
import { ChangingQueryClient } from './changing-query-client.ts'
import { ApiProblem } from './client.ts'

const staleMs = 10_000
const retriesMax = 2

export const queryClient = new ChangingQueryClient({
  defaultOptions: {
    queries: {
      staleTime: staleMs,
      refetchOnWindowFocus: true,
      // A refusal stays one; an outage passes.
      retry: (failures, error) =>
        failures < retriesMax && error instanceof ApiProblem && error.status >= 500,
    },
    mutations: { retry: false },
  },
})
