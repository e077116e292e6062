/** Signals: the catalog with weights and what they are worth, spikes, outcomes, unknown signals. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Catalog } from './catalog.tsx'
import { OutcomesTab } from './outcomes.tsx'
import { Spikes } from './spikes.tsx'
import { UnknownSignals } from './unknown.tsx'

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const spikes = useQuery({
    queryKey: ['prevalence-spikes', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/prevalence-spikes', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
  })
  const open = spikes.data?.data.filter(({ ended_at: ended }) => ended === null).length ?? 0
  return (
    <Frame
      about="What SDKs report, what it weighs in the policy in force, and how often it is right."
      title="Signals"
    >
      <Tabs
        tabs={[
          { id: 'catalog', label: 'Catalog', content: <Catalog tenant={tenant} /> },
          {
            id: 'spikes',
            label: (
              <span className="flex items-center gap-1.5">
                Prevalence spikes {open > 0 && <Badge tone="warn">{open}</Badge>}
              </span>
            ),
            content: <Spikes query={spikes} tenant={tenant} />,
          },
          { id: 'outcomes', label: 'Outcomes', content: <OutcomesTab tenant={tenant} /> },
          { id: 'unknown', label: 'Unknown signals', content: <UnknownSignals tenant={tenant} /> },
        ]}
      />
    </Frame>
  )
}
