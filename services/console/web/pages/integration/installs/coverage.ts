/** The attestation coverage of a tenant as the page reads it, and how its shares are written. */
import { useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../../api/client.ts'

export type Coverage = AnswerOf<'/admin/v1/tenants/{tenant_id}/attestation-coverage', 'get'>

export const useCoverage = (tenantId: string) =>
  useQuery({
    queryKey: ['attestation-coverage', tenantId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/attestation-coverage', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
  })

/** In whole percent, but neither all nor none where it is not. */
export function toShare(part: number, all: number): string {
  if (all === 0 || part === 0) return '0 %'
  if (part === all) return '100 %'
  const percent = (part / all) * 100
  if (percent < 1) return '< 1 %'
  return percent > 99 ? '> 99 %' : `${Math.round(percent)} %`
}
