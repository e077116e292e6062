/**
 * Whether alerts reach the webhook, whether every stage has what the one before it had, and how far
 * the fleet attests.
 */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { toPercentText } from '#shared/core/outcomes/figure-text.ts'
import { api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty, Loaded, SkeletonRows } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import type { Overview } from './overview.ts'

const number = (value: number) => value.toLocaleString('en')

export function Health({
  tenant,
  overview: { webhook, telemetry, from, to },
  rest,
}: {
  tenant: string
  overview: Overview
  /** The parts that are read later. */
  rest: { data: Overview | undefined; isPending: boolean }
}) {
  const reconciliation = rest.data?.reconciliation ?? null
  const states = webhook.deliveries.map(({ state, count }) => `${number(count.now)} ${state}`)
  return (
    <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
      <Panel
        action={
          <Link params={{ tenant }} to="/t/$tenant/webhooks">
            Deliveries
          </Link>
        }
        title="Webhook"
      >
        <Facts
          facts={[
            [
              'State',
              <Badge key="state" tone={webhook.state === 'on' ? 'good' : 'warn'}>
                {webhook.state}
              </Badge>,
            ],
            [
              'Failing since',
              webhook.failing_since ? <Time at={webhook.failing_since} key="at" /> : 'not failing',
            ],
            ['Last failure', webhook.last_failure ?? 'none'],
            ['Deliveries', states.join(', ') || 'none'],
          ]}
        />
      </Panel>
      <Panel
        action={
          <Link params={{ tenant }} search={{ from, to }} to="/t/$tenant/reconciliation">
            By hour
          </Link>
        }
        title="Reconciliation"
      >
        {rest.isPending ? (
          <SkeletonRows rows={4} />
        ) : reconciliation === null ? (
          <Empty title="Not known at the moment" />
        ) : (
          <Facts
            facts={[
              [
                'Result',
                <Badge key="result" tone={reconciliation.agrees ? 'good' : 'bad'}>
                  {reconciliation.agrees
                    ? 'every stage agrees'
                    : `${number(reconciliation.differences)} differences`}
                </Badge>,
              ],
              [
                'Events',
                `${number(reconciliation.accepted)} accepted, ${number(reconciliation.stored)} stored, ${number(reconciliation.decided)} decided`,
              ],
              [
                'Alerts',
                `${number(reconciliation.alerts)} raised, ${number(reconciliation.delivered)} delivered`,
              ],
              [
                'Last event',
                telemetry ? <Time at={telemetry.last_event_at} key="last" /> : 'not known',
              ],
            ]}
          />
        )}
      </Panel>
      <Attestation tenant={tenant} />
    </div>
  )
}

const toShare = (some: number, all: number): string =>
  all === 0 ? 'no event' : `${toPercentText(some / all)} of events`

/**
 * Of a day, as a busy tenant's week takes long to read. Shares alone: counts of another span than
 * the page's would contradict it.
 */
function Attestation({ tenant }: { tenant: string }) {
  const coverage = useQuery({
    queryKey: ['attestation-coverage', tenant, 'day'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/attestation-coverage', {
          params: {
            path: { tenant_id: tenant },
            query: { days: 1 },
          },
        }),
      ),
    staleTime: 60_000,
  })
  return (
    <Panel
      action={
        <Link params={{ tenant }} to="/manage/integrations/$tenant">
          By version
        </Link>
      }
      title="Attestation, last day"
    >
      <Loaded query={coverage} skeleton={<SkeletonRows rows={4} />}>
        {({ totals }) => (
          <Facts
            facts={[
              ['Signed by install', toShare(totals.install_key, totals.events)],
              ['Verified', toShare(totals.verified, totals.events)],
              ['Rejected', toShare(totals.rejected, totals.events)],
              ['Without', toShare(totals.missing, totals.events)],
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}
