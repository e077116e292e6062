/** Whether alerts reach the webhook, and whether every stage has what the one before it had. */
import { Link } from '@tanstack/react-router'
import { Badge } from '../../components/badge.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import type { Overview } from './overview.ts'

const number = (value: number) => value.toLocaleString('en')

export function Health({
  tenant,
  overview: { webhook, reconciliation, telemetry },
}: {
  tenant: string
  overview: Overview
}) {
  const states = webhook.deliveries.map(({ state, count }) => `${number(count.now)} ${state}`)
  return (
    <div className="grid gap-4 xl:grid-cols-2">
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
          <Link params={{ tenant }} to="/t/$tenant/reconciliation">
            By hour
          </Link>
        }
        title="Reconciliation"
      >
        {reconciliation === null ? (
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
    </div>
  )
}
