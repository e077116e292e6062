/** Changes of many alerts: the server does them, the page watches, cancels and undoes them. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { type AnswerOf, api, ok } from '../../../api/client.ts'
import { useUrlState } from '../../../components/state/url-state.ts'
import { deferWhileHovered } from '../list/defer-while-hovered.ts'

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
    if (!isOver || jobId === '') return
    void client.invalidateQueries({ queryKey: ['alert'] })
    return deferWhileHovered(() => void client.invalidateQueries({ queryKey: ['alerts'] }))
  }, [isOver, jobId, client])
  return { job: jobId === '' ? undefined : job, error: jobId === '' ? null : error, watch }
}

/** The newest jobs of a tenant. */
export const jobsQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['bulk-jobs', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/bulk-jobs', {
          params: { path: { tenant_id: tenant }, query: { limit: 100 } },
        }),
      ),
    staleTime: 0,
    refetchInterval: ({ state: { data } }) =>
      data?.data.some(({ state }) => state === 'running') ? watchMs : false,
  })

/** Which alerts a change means: all of a filter, or those that are selected. */
export type BulkTarget = { filter: Record<string, string> } | { alert_ids: string[] }

/** How many alerts a target has at this moment. */
export const countQuery = (tenant: string, target: BulkTarget) =>
  queryOptions({
    queryKey: ['alert-count', tenant, target],
    queryFn: async () => {
      if ('alert_ids' in target) return target.alert_ids.length
      const { total } = await ok(
        api.GET('/admin/v1/tenants/{tenant_id}/alerts', {
          params: { path: { tenant_id: tenant }, query: { ...target.filter, limit: 1 } },
        }),
      )
      return total
    },
    staleTime: 0,
    gcTime: 0,
  })

export type BulkChange =
  | { sets: 'disposition'; disposition: Disposition; note: string | null }
  | { sets: 'assignee'; assignee: string | null }

/** The body of the call, which is also that of a proposal. */
export function toBulkBody(target: BulkTarget, change: BulkChange, count: number) {
  const { sets: _, ...to } = change
  return { ...target, ...to, expected_count: count }
}

/** Begins a job; the server refuses when another number of alerts matches by then. */
export const useStartBulk = (tenant: string) =>
  useMutation({
    mutationFn: ({
      target,
      change,
      count,
    }: {
      target: BulkTarget
      change: BulkChange
      count: number
    }) => {
      const params = { path: { tenant_id: tenant } }
      const body = toBulkBody(target, change, count)
      const path = '/admin/v1/tenants/{tenant_id}/alerts' as const
      return change.sets === 'disposition'
        ? ok(
            api.POST(`${path}/bulk-disposition`, {
              params,
              body: body as typeof body & { disposition: Disposition },
            }),
          )
        : ok(
            api.POST(`${path}/bulk-assign`, {
              params,
              body: body as typeof body & { assignee: string | null },
            }),
          )
    },
  })

function useRefreshJobs(): (job: BulkJob) => void {
  const client = useQueryClient()
  return (job) => {
    void client.invalidateQueries({ queryKey: ['bulk-jobs', job.tenant_id] })
    void client.invalidateQueries({ queryKey: ['bulk-job'] })
  }
}

export function useCancelBulk() {
  const refresh = useRefreshJobs()
  return useMutation({
    mutationFn: (jobId: string) =>
      ok(api.POST('/admin/v1/bulk-jobs/{job_id}/cancel', { params: { path: { job_id: jobId } } })),
    onSuccess: refresh,
  })
}

/** Begins the undo of a job; its answer is the job that does it. */
export function useUndoBulk() {
  const refresh = useRefreshJobs()
  return useMutation({
    mutationFn: (jobId: string) =>
      ok(api.POST('/admin/v1/bulk-jobs/{job_id}/undo', { params: { path: { job_id: jobId } } })),
    onSuccess: refresh,
  })
}

/** The job whose undo can begin, or go on: the job itself, or the one of an undo that was stopped. */
export function undoableOf(job: BulkJob): string | null {
  if (job.state === 'running' || job.undone_by !== null) return null
  if (job.undo_of !== null) return job.state === 'cancelled' ? job.undo_of : null
  return job.changed > 0 ? job.job_id : null
}
