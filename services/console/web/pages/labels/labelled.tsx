/** The labels of one subject. The table is loaded when there is one. */
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { api, ok } from '../../api/client.ts'
import { Panel } from '../../components/page.tsx'
import type { LabelSubject } from './labels.ts'

const LabelTable = lazy(() =>
  import('./label-table.tsx').then((file) => ({ default: file.LabelTable })),
)

/** Nothing while there is none. */
export function Labelled({ tenant, subject }: { tenant: string; subject: LabelSubject }) {
  const query = { [`${subject.kind}_id`]: subject.id, limit: 100 }
  const labels = useQuery({
    queryKey: ['labels', tenant, query],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/labels', {
          params: { path: { tenant_id: tenant }, query },
        }),
      ),
  })
  const rows = labels.data?.data ?? []
  if (rows.length === 0) return null
  return (
    <Panel title="Labels">
      <Suspense>
        <LabelTable rows={rows} tenant={tenant} withSubject={false} />
      </Suspense>
    </Panel>
  )
}
