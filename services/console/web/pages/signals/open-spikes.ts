/** Prevalence spikes that are open, for pages that show them beside something else. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type Spike = AnswerOf<
  '/admin/v1/tenants/{tenant_id}/prevalence-spikes',
  'get'
>['data'][number]

/** Shares are compared every hour: every page that is open learns of it within a minute. */
const lookMs = 60_000

/** Their numbers are those of the last comparison: no event is read for them. */
export const openSpikesQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['prevalence-spikes', tenant, 'open'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/prevalence-spikes', {
          params: { path: { tenant_id: tenant }, query: { open: 'true', affected: 'false' } },
        }),
      ),
    staleTime: lookMs,
    refetchInterval: lookMs,
  })

export const toShareText = (share: number | null) =>
  share === null ? 'no data' : `${(share * 100).toFixed(1)} %`

/** The address of a draft that suppresses the signal of a spike. */
export const toSuppression = ({ signal, sdk_version: version, platform, share }: Spike) => ({
  tab: 'edit',
  suppress: signal,
  versions: version,
  platforms: platform,
  reason: `${signal} rose to ${toShareText(share)} of devices with ${version}`,
})
