/** One event: what was answered and why, step by step, from the stored body and its policy. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useTenantOf } from '../../api/tenants.ts'
import { ActionBadge, Badge } from '../../components/badge.tsx'
import { Id, IdText } from '../../components/id.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { SessionLink } from '../alert/session-link.tsx'
import { ConnectionFact } from '../entities/connection.tsx'
import { LabelButton } from '../labels/label-button.tsx'
import { Labelled } from '../labels/labelled.tsx'
import { type Explanation, explanationQuery } from './explanation.ts'
import { RawBody } from './raw-body.tsx'
import { SignalTable } from './why/signal-table.tsx'
import { Waterfall } from './why/waterfall.tsx'

export function Page() {
  const { tenant = '', eventId = '' } = useParams({ strict: false })
  const subject = { kind: 'event', id: eventId } as const
  const explanation = useQuery(explanationQuery(eventId))
  useTenantOf(explanation.data?.event.tenant_id)
  return (
    <Frame controls={<LabelButton subject={subject} tenant={tenant} />} title="Event">
      <Labelled subject={subject} tenant={tenant} />
      <Loaded query={explanation}>{(shown) => <Event shown={shown} />}</Loaded>
    </Frame>
  )
}

function Event({ shown }: { shown: Explanation }) {
  const { event, policy, steps, answered, decided } = shown
  const { tenant_id: tenant } = event
  const user = event.user_id ?? event.account_id
  return (
    <>
      <Panel>
        <Facts
          facts={[
            ['Event', <Id key="id" value={event.event_id} />],
            ['Received', <Time at={event.received_at} exact key="at" />],
            [
              'Decided',
              <span className="flex flex-wrap items-center gap-2" key="decided">
                <ActionBadge action={decided.action} />
                <span>risk score {decided.risk_score}</span>
              </span>,
            ],
            [
              'Answered',
              <span className="flex flex-wrap items-center gap-2" key="answer">
                <ActionBadge action={answered.rasp_action} />
                <span>device score {answered.rasp_score}</span>
                <Check shown={shown} />
              </span>,
            ],
            [
              'Device',
              <Link
                className="break-all"
                key="d"
                params={{ tenant, deviceId: event.device_id }}
                to="/t/$tenant/devices/$deviceId"
              >
                <IdText value={event.device_id} />
              </Link>,
            ],
            ['Session', <SessionLink id={event.session_id} key="s" tenant={tenant} />],
            [
              'User',
              user === null ? (
                'none'
              ) : (
                <Link
                  className="break-all"
                  key="u"
                  params={{ tenant, userId: user }}
                  to="/t/$tenant/users/$userId"
                >
                  <IdText value={user} />
                </Link>
              ),
            ],
            [
              'Connection',
              <ConnectionFact connection={event.connection} key="from" tenant={tenant} />,
            ],
            ['SDK', `${event.sdk_version} on ${event.platform}`],
            ['Policy', `version ${policy.version}, ${policy.name}`],
          ]}
        />
      </Panel>
      <Panel title="Why">
        <Waterfall
          action={decided.action}
          reasons={decided.reasons}
          score={decided.risk_score}
          signals={steps.signals}
          thresholds={steps.thresholds}
        />
      </Panel>
      <Panel title="Signals">
        <SignalTable signals={steps.signals} />
      </Panel>
      <RawBody eventId={event.event_id} />
    </>
  )
}

/** Whether the stored event still gives the answer of that time. */
function Check({ shown: { matches, body_intact: intact } }: { shown: Explanation }) {
  if (intact === false) return <Badge tone="bad">the stored body was changed</Badge>
  return matches ? (
    <Badge tone="good">scored again: the same</Badge>
  ) : (
    <Badge tone="bad">scored again: different</Badge>
  )
}
