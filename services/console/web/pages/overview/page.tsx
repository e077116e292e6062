/** Overview: a period beside the one before it; each tile leads to what is behind its number. */
import { useQuery } from '@tanstack/react-query'
import { lazyRouteComponent, useParams } from '@tanstack/react-router'
import { Suspense } from 'react'
import { toRateText } from '#shared/core/outcomes/figure-text.ts'
import { api, ok } from '../../api/client.ts'
import { classes } from '../../components/classes.ts'
import { Page as Frame } from '../../components/page.tsx'
import { Loaded, Skeleton } from '../../components/states.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { openSpikesQuery } from '../signals/open-spikes.ts'
import { Attention, SpikeBanner } from './attention.tsx'
import { Connections } from './connections.tsx'
import { Health } from './health.tsx'
import { Lines } from './lines.tsx'
import type { Overview } from './overview.ts'
import { Shares } from './shares.tsx'
import { Tile } from './tile.tsx'

const recoveryMs = 3_000
// Seen once in the life of a tenant.
const Checklist = lazyRouteComponent(() => import('./checklist.tsx'), 'Checklist')

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const { from, to } = useTimeRange()
  const overview = useQuery({
    queryKey: ['overview', tenant, from, to],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/overview', {
          params: {
            path: { tenant_id: tenant },
            query: { from, ...(to === null ? {} : { to }), parts: 'telemetry' },
          },
        }),
      ),
    // What a store that was away has to say, soon after it is back.
    refetchInterval: ({ state }) =>
      state.status === 'error' || state.data?.telemetry === null ? recoveryMs : false,
    placeholderData: (before) => before,
  })
  // Asked for at once, so that its banner moves nothing when it comes.
  useQuery(openSpikesQuery(tenant))
  return (
    <Frame controls={<TimeRange />} title="Overview">
      <Loaded query={overview} skeleton={<Skeleton className="h-96" />}>
        {(shown) => (
          <div
            aria-busy={overview.isPlaceholderData}
            className={classes(
              'grid grid-cols-[minmax(0,1fr)] gap-4',
              overview.isPlaceholderData && 'opacity-50',
            )}
          >
            <Shown overview={shown} tenant={tenant} />
          </div>
        )}
      </Loaded>
    </Frame>
  )
}

const toNote = ({ fraud, recall }: NonNullable<Overview['outcomes']>): string =>
  `of ${fraud} sessions: ${toRateText(recall)}`

function Shown({ tenant, overview }: { tenant: string; overview: Overview }) {
  const { telemetry, alerts, from, to } = overview
  const period = { from, to }
  // Not on the way to the first paint: it reads sessions, and every stage's own numbers.
  const rest = useQuery({
    queryKey: ['overview', tenant, from, to, 'rest'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/overview', {
          params: {
            path: { tenant_id: tenant },
            query: { from, to, parts: 'outcomes,reconciliation' },
          },
        }),
      ),
  })
  const outcomes = rest.data?.outcomes ?? null
  if (telemetry?.has_events === false && alerts.open + alerts.raised.before === 0) {
    return (
      <Suspense fallback={<Skeleton className="h-64" />}>
        <Checklist overview={overview} tenant={tenant} />
      </Suspense>
    )
  }
  return (
    <>
      <SpikeBanner tenant={tenant} />
      {telemetry === null && (
        <p className="rounded-lg bg-bad-soft px-4 py-3 text-bad" role="status">
          ClickHouse does not answer: numbers of events are missing. This page looks again by
          itself.
        </p>
      )}
      <ul className="grid grid-cols-2 gap-3 lg:grid-cols-5">
        <Tile name="Events" pair={telemetry?.events} search={period} page="fleet" tenant={tenant} />
        <Tile
          name="Devices"
          pair={telemetry?.devices}
          search={period}
          page="fleet"
          tenant={tenant}
        />
        <Tile
          name="Sessions"
          pair={telemetry?.sessions}
          search={period}
          page="fleet"
          tenant={tenant}
        />
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
          name="Open alerts"
          note="of any time"
          pair={{ now: alerts.open }}
          search={{ disposition: 'OPEN' }}
          page="alerts"
          tenant={tenant}
        />
        <Tile
          name="Events with BLOCK"
          pair={telemetry?.actions.BLOCK}
          search={{ ...period, action: 'BLOCK' }}
          page="events"
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
      <Lines overview={overview} />
      <Attention overview={overview} tenant={tenant} />
      <Connections overview={overview} tenant={tenant} />
      <Shares overview={overview} tenant={tenant} />
      <Health overview={overview} rest={rest} tenant={tenant} />
    </>
  )
}
