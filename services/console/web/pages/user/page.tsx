/** One user or account: its devices, sessions, alerts and linked users. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Id, IdText } from '../../components/id.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { AlertsFact } from '../entities/alerts-fact.tsx'
import { Erase } from '../entities/erase.tsx'
import { Links } from '../entities/links.tsx'
import { Listed, PutOnList } from '../entities/listed.tsx'
import { Networks } from '../entities/networks.tsx'
import { OpenCaseLink } from '../entities/open-case.tsx'
import { PhoneFact } from '../entities/phone-fact.tsx'
import { Sessions, scoreTexts } from '../entities/sessions.tsx'
import { TimelinePanel } from '../entities/timeline/timeline-panel.tsx'
import { LabelButton } from '../labels/label-button.tsx'
import { Labelled } from '../labels/labelled.tsx'

type User = AnswerOf<'/admin/v1/tenants/{tenant_id}/users/{user_id}', 'get'>
type Device = User['user']['devices'][number]

/** Devices that are shown; the server has them all. */
const devicesShown = 1_000

export function Page() {
  const { tenant = '', userId = '' } = useParams({ strict: false })
  const user = useQuery({
    queryKey: ['user', tenant, userId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/users/{user_id}', {
          params: {
            path: { tenant_id: tenant, user_id: userId },
            query: { devices_limit: devicesShown },
          },
        }),
      ),
  })
  const timeline = <TimelinePanel subject={{ kind: 'user', id: userId }} tenant={tenant} />
  return (
    <Frame
      controls={
        <>
          <OpenCaseLink subjects={[{ kind: 'user', id: userId }]} tenant={tenant} />
          <LabelButton subject={{ kind: 'user', id: userId }} tenant={tenant} />
          <PutOnList listed={{ kind: 'user', id: userId }} tenant={tenant} />
          <Erase subject={{ kind: 'user', id: userId }} tenant={tenant} />
        </>
      }
      title="User"
    >
      <Loaded query={user}>
        {({ user: known, sessions, alerts }) => (
          <>
            <Panel>
              <Facts
                facts={[
                  ['User', <Id key="id" most={64} value={known.user_id} />],
                  ['First seen', <Time at={known.first_seen_at} exact key="first" />],
                  ['Last seen', <Time at={known.last_seen_at} exact key="last" />],
                  ['Highest risk score', known.risk_score],
                  ['Highest device score', known.peak_rasp_score],
                  ['Devices', known.devices_total.toLocaleString('en')],
                  [
                    'Alerts',
                    <AlertsFact
                      filter={{ user_id: userId }}
                      key="alerts"
                      tenant={tenant}
                      verdicts={alerts.verdicts}
                    />,
                  ],
                ]}
              />
            </Panel>
            <Panel title="Devices">
              <Table
                columns={columnsOf(tenant)}
                heightClass="max-h-96"
                label="Devices"
                rowKey={({ device_id: id }) => id}
                rows={known.devices}
              />
            </Panel>
            <Labelled subject={{ kind: 'user', id: userId }} tenant={tenant} />
            <Listed listed={{ kind: 'user', id: userId }} tenant={tenant} />
            {timeline}
            <Sessions sessions={sessions} tenant={tenant} />
            <Networks sessions={sessions} tenant={tenant} />
            <Links id={userId} kind="user" tenant={tenant} />
          </>
        )}
      </Loaded>
      {/* What Postgres knows is there without ClickHouse. */}
      {user.failureCount > 0 && user.data === undefined && timeline}
    </Frame>
  )
}

const columnsOf = (tenant: string): Column<Device>[] => [
  {
    id: 'device',
    head: 'Device',
    cell: ({ device_id: id }) => (
      <Link
        className="block truncate"
        params={{ tenant, deviceId: id }}
        to="/t/$tenant/devices/$deviceId"
      >
        <IdText value={id} />
      </Link>
    ),
  },
  {
    id: 'risk',
    head: <span title={scoreTexts.risk}>Highest risk</span>,
    numeric: true,
    cell: (device) => device.risk_score,
    width: '8rem',
  },
  {
    id: 'phone',
    head: 'Phone',
    cell: ({ phone }) => <PhoneFact phone={phone} tenant={tenant} />,
    width: '32%',
  },
  {
    id: 'peak',
    head: <span title={scoreTexts.device}>Device score</span>,
    numeric: true,
    cell: (device) => device.peak_rasp_score,
    width: '8rem',
  },
  {
    id: 'first',
    head: 'First seen',
    cell: (one) => <Time at={one.first_seen_at} />,
    width: '8rem',
  },
  { id: 'last', head: 'Last seen', cell: (one) => <Time at={one.last_seen_at} />, width: '8rem' },
]
