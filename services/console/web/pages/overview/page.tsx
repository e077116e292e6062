/** Overview: a period beside the one before it; each tile leads to what is behind its number. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { api, ok } from '../../api/client.ts'
import { Page as Frame } from '../../components/page.tsx'
import { Loaded, Skeleton } from '../../components/states.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { toRateText } from '../../components/words.ts'
import { Connections } from './connections.tsx'
import { Health } from './health.tsx'
import type { Overview } from './overview.ts'
import { Shares } from './shares.tsx'
import { Tile } from './tile.tsx'

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const { from, to } = useTimeRange()
  const overview = useQuery({
    queryKey: ['overview', tenant, from, to],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/overview', {
          params: { path: { tenant_id: tenant }, query: { from, ...(to === null ? {} : { to }) } },
        }),
      ),
    placeholderData: (before) => before,
  })
  return (
    <Frame controls={<TimeRange />} title="Overview">
      <Loaded query={overview} skeleton={<Skeleton className="h-96" />}>
        {(shown) => <Shown overview={shown} tenant={tenant} />}
      </Loaded>
    </Frame>
  )
}

const toNote = ({ fraud, recall }: NonNullable<Overview['outcomes']>): string =>
  `of ${fraud} sessions: ${toRateText(recall)}`

function Shown({ tenant, overview }: { tenant: string; overview: Overview }) {
  const { telemetry, alerts, outcomes, from, to } = overview
  const period = { from, to }
  return (
    <>
      <ul className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <Tile name="Events" pair={telemetry?.events} page="fleet" tenant={tenant} />
        <Tile name="Devices" pair={telemetry?.devices} page="fleet" tenant={tenant} />
        <Tile name="Sessions" pair={telemetry?.sessions} page="fleet" tenant={tenant} />
        <Tile name="Alerts" pair={alerts.raised} search={period} page="alerts" tenant={tenant} />
        <Tile
          name="Alerts with REVIEW"
          pair={alerts.REVIEW}
          search={{ ...period, decision: 'REVIEW' }}
          page="alerts"
          tenant={tenant}
        />
        <Tile
          name="Alerts with BLOCK"
          pair={alerts.BLOCK}
          search={{ ...period, decision: 'BLOCK' }}
          page="alerts"
          tenant={tenant}
        />
        <Tile
          name="Open alerts, of any time"
          pair={{ now: alerts.open }}
          search={{ disposition: 'OPEN' }}
          page="alerts"
          tenant={tenant}
        />
        <Tile
          name="Events with BLOCK"
          pair={telemetry?.actions.BLOCK}
          page="fleet"
          tenant={tenant}
        />
        <Tile
          name="Fraud caught"
          note={outcomes === null ? undefined : toNote(outcomes)}
          page="signals"
          pair={outcomes === null ? undefined : { now: outcomes.caught }}
          search={{ ...period, tab: 'outcomes' }}
          tenant={tenant}
        />
        <Tile
          name="Honest users harmed"
          note={outcomes === null ? undefined : `${outcomes.harmed} of ${outcomes.honest} sessions`}
          page="signals"
          pair={outcomes === null ? undefined : { now: outcomes.harmed_users }}
          search={{ ...period, tab: 'outcomes' }}
          tenant={tenant}
        />
      </ul>
      <Connections overview={overview} tenant={tenant} />
      <Shares overview={overview} tenant={tenant} />
      <Health overview={overview} tenant={tenant} />
    </>
  )
}
