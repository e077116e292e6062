/** Changes of all alerts that a filter matches: the server does them, the page watches. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type AnswerOf, api, ok } from '../../../api/client.ts'
import { useUrlState } from '../../../components/url-state.ts'
import type { Disposition } from '../../alert/alert.ts'

export type BulkJob = AnswerOf<'/admin/v1/bulk-jobs/{job_id}', 'get'>

const watchMs = 500

const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['bulk-job', jobId],
    queryFn: () =>
      ok(api.GET('/admin/v1/bulk-jobs/{job_id}', { params: { path: { job_id: jobId } } })),
    enabled: jobId !== '',
    refetchInterval: ({ state: { data } }) => (data?.state === 'running' ? watchMs : false),
  })

/**
 * The job that the URL names, so that it is found again after the page was left.
 * @returns undefined without one, or until it is known
 */
export function useBulkJob(): {
  job: BulkJob | undefined
  error: unknown
  watch: (jobId: string) => void
} {
  const client = useQueryClient()
  const [jobId, watch] = useUrlState('job')
  const { data: job, error } = useQuery(jobQuery(jobId))
  const isOver = job !== undefined && job.state !== 'running'
  useEffect(() => {
    if (isOver) void client.invalidateQueries({ queryKey: ['alerts'] })
  }, [isOver, client])
  return { job: jobId === '' ? undefined : job, error: jobId === '' ? null : error, watch }
}

/** How many alerts a filter matches at this moment. */
export const countQuery = (tenant: string, filter: Record<string, string>) =>
  queryOptions({
    queryKey: ['alert-count', tenant, filter],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/alerts', {
          params: { path: { tenant_id: tenant }, query: { ...filter, limit: 1 } },
        }),
      ),
    select: ({ total }) => total,
    staleTime: 0,
    gcTime: 0,
  })

/** Begins a job; the server refuses when another number of alerts matches by then. */
export const useStartBulk = (tenant: string) =>
  useMutation({
    mutationFn: (wanted: {
      filter: Record<string, string>
      disposition: Disposition
      note: string | null
      expected_count: number
    }) =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/alerts/bulk-disposition', {
          params: { path: { tenant_id: tenant } },
          body: wanted,
        }),
      ),
  })

export function useCancelBulk() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (jobId: string) =>
      ok(api.POST('/admin/v1/bulk-jobs/{job_id}/cancel', { params: { path: { job_id: jobId } } })),
    onSuccess: (job) => client.setQueryData(['bulk-job', job.job_id], job),
  })
}
