/** One device: what is known of it, its sessions, signals, users, alerts and links. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { withPercentile } from '#shared/core/outcomes/percentile-text.ts'
import { api, ok } from '../../api/client.ts'
import type { components } from '../../api/schema.ts'
import { Id, IdText } from '../../components/id.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { AlertsFact } from '../entities/alerts-fact.tsx'
import { ConnectionFact } from '../entities/connection.tsx'
import { Erase } from '../entities/erase.tsx'
import { Links } from '../entities/links.tsx'
import { Listed, PutOnList } from '../entities/listed.tsx'
import { Networks } from '../entities/networks.tsx'
import { OpenCaseLink } from '../entities/open-case.tsx'
import { PhoneFact } from '../entities/phone-fact.tsx'
import { Sessions } from '../entities/sessions.tsx'
import { TimelinePanel } from '../entities/timeline/timeline-panel.tsx'
import { LabelButton } from '../labels/label-button.tsx'
import { Labelled } from '../labels/labelled.tsx'
import { NetworkDevices } from './network-devices.tsx'
import { Signals } from './signals.tsx'

/** Sessions that are shown; the server has them all. */
const sessionsShown = 1_000

type Install = components['schemas']['DeviceInstall']

const toInstallText = (install: Install | null): string =>
  install === null ? 'none' : `${install.provider}, ${install.verdict}, key in ${install.level}`

export function Page() {
  const { tenant = '', deviceId = '' } = useParams({ strict: false })
  const device = useQuery({
    queryKey: ['device', tenant, deviceId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}', {
          params: {
            path: { tenant_id: tenant, device_id: deviceId },
            query: { sessions_limit: sessionsShown },
          },
        }),
      ),
  })
  const timeline = <TimelinePanel subject={{ kind: 'device', id: deviceId }} tenant={tenant} />
  const phone = device.data?.device.phone
  return (
    <Frame
      controls={
        <>
          <OpenCaseLink
            subjects={[
              { kind: 'device', id: deviceId },
              ...(phone ? [{ kind: 'phone' as const, id: phone.phone_id }] : []),
            ]}
            tenant={tenant}
          />
          <LabelButton subject={{ kind: 'device', id: deviceId }} tenant={tenant} />
          <PutOnList listed={{ kind: 'device', id: deviceId }} tenant={tenant} />
          <Erase subject={{ kind: 'device', id: deviceId }} tenant={tenant} />
        </>
      }
      title="Device"
    >
      <Loaded query={device}>
        {({ device: known, alerts }) => (
          <>
            <Panel>
              <Facts
                facts={[
                  ['Device', <Id key="id" most={64} value={known.device_id} />],
                  ['First seen', <Time at={known.first_seen_at} exact key="first" />],
                  ['Last seen', <Time at={known.last_seen_at} exact key="last" />],
                  ['Highest risk score', withPercentile(known.risk_score, known.risk_percentile)],
                  ['Highest device score', known.peak_rasp_score],
                  ['Phone', <PhoneFact key="phone" phone={known.phone} tenant={tenant} />],
                  ['Registration', toInstallText(known.install)],
                  [
                    'Connection',
                    <ConnectionFact connection={known.connection} key="from" tenant={tenant} />,
                  ],
                  ['Sessions', known.sessions_total.toLocaleString('en')],
                  [
                    'Alerts',
                    <AlertsFact
                      filter={{ device_id: deviceId }}
                      key="alerts"
                      tenant={tenant}
                      verdicts={alerts.verdicts}
                    />,
                  ],
                ]}
              />
            </Panel>
            <Labelled subject={{ kind: 'device', id: deviceId }} tenant={tenant} />
            <Listed listed={{ kind: 'device', id: deviceId }} tenant={tenant} />
            {timeline}
            <Sessions sessions={known.sessions} tenant={tenant} total={known.sessions_total} />
            <Networks sessions={known.sessions} tenant={tenant} />
            <Signals deviceId={deviceId} tenant={tenant} />
            <Panel title="Users seen on it">
              <Users tenant={tenant} users={known.users_seen_on} />
            </Panel>
            {known.connection !== null && <NetworkDevices deviceId={deviceId} tenant={tenant} />}
            <Links id={deviceId} kind="device" tenant={tenant} />
          </>
        )}
      </Loaded>
      {/* What Postgres knows is there without ClickHouse. */}
      {device.failureCount > 0 && device.data === undefined && timeline}
    </Frame>
  )
}

function Users({ tenant, users }: { tenant: string; users: string[] }) {
  if (users.length === 0) return <Empty title="No user was named" />
  return (
    <ul className="flex max-h-96 flex-wrap gap-x-6 gap-y-2 overflow-y-auto px-4 py-3">
      {users.map((user) => (
        <li className="min-w-0 break-all" key={user}>
          <Link params={{ tenant, userId: user }} to="/t/$tenant/users/$userId">
            <IdText value={user} />
          </Link>
        </li>
      ))}
    </ul>
  )
}
