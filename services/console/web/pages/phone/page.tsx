/** One phone: the installs on the same hardware, why they are, its users, alerts and corrections. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Id, IdText } from '../../components/id.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { useMay } from '../../shell/operator.ts'
import { OpenCaseLink } from '../entities/open-case.tsx'
import { TimelinePanel } from '../entities/timeline/timeline-panel.tsx'
import { toVerdictText } from '../entities/verdicts.ts'
import { CorrectDialog } from './correct-dialog.tsx'
import { Corrections } from './corrections.tsx'
import { Installs } from './installs.tsx'
import { type Install, loadPhone, type Phone, type PhonePage, phonesKey } from './phones.ts'
import { Why } from './why.tsx'

export function Page() {
  const { tenant = '', phoneId = '' } = useParams({ strict: false })
  const [joining, setJoining] = useState(false)
  const mayChange = useMay('analyst')
  const phone = useQuery({
    queryKey: [...phonesKey(tenant), phoneId],
    queryFn: () => loadPhone(tenant, phoneId),
  })
  const timeline = <TimelinePanel subject={{ kind: 'phone', id: phoneId }} tenant={tenant} />
  return (
    <Frame
      about="The installs of the app on the same hardware. A device id names an install: who reinstalls is a new device, on the same phone."
      controls={
        <>
          <OpenCaseLink subjects={[{ kind: 'phone', id: phoneId }]} tenant={tenant} />
          {mayChange && <Button onClick={() => setJoining(true)}>Join an install</Button>}
        </>
      }
      title="Phone"
    >
      <Loaded query={phone}>
        {(page) => <Shown page={page} tenant={tenant} timeline={timeline} />}
      </Loaded>
      {/* What Postgres knows is there without ClickHouse. */}
      {phone.failureCount > 0 && phone.data === undefined && timeline}
      {joining && (
        <CorrectDialog onClose={() => setJoining(false)} phoneId={phoneId} tenant={tenant} />
      )}
    </Frame>
  )
}

function Shown({
  page,
  tenant,
  timeline,
}: {
  page: PhonePage
  tenant: string
  timeline: ReactNode
}) {
  const { phone, alerts, corrections } = page
  const mayChange = useMay('analyst')
  const [asked, ask] = useUrlState('install')
  const [splitting, split] = useState<Install | null>(null)
  const chosen =
    phone.installs.find(({ device_id: id }) => id === asked) ??
    phone.installs.find(({ evidence }) => evidence.length > 0) ??
    phone.installs[0]
  return (
    <>
      <Panel>
        <Facts
          facts={[
            ['Phone', <Id key="id" most={64} value={phone.phone_id} />],
            ['First seen', <Time at={phone.first_seen_at} exact key="first" />],
            ['Last seen', <Time at={phone.last_seen_at} exact key="last" />],
            ['Highest risk score', phone.risk_score],
            ['Installs', phone.installs_total.toLocaleString('en')],
            ['Users', phone.users_total.toLocaleString('en')],
            ['Alerts', toVerdictText(alerts.verdicts)],
          ]}
        />
      </Panel>
      <Panel
        action={
          phone.installs.length < phone.installs_total && (
            <span className="text-muted">
              the latest {phone.installs.length} of {counted(phone.installs_total, 'install')}
            </span>
          )
        }
        title="Installs"
      >
        <Installs
          onSelect={ask}
          onSplit={mayChange ? split : undefined}
          phone={phone}
          selected={chosen?.device_id}
          tenant={tenant}
        />
      </Panel>
      {chosen !== undefined && <Why install={chosen} tenant={tenant} />}
      {timeline}
      <Corrections corrections={corrections} phoneId={phone.phone_id} tenant={tenant} />
      <Users phone={phone} tenant={tenant} />
      {splitting !== null && (
        <CorrectDialog
          install={splitting}
          onClose={() => split(null)}
          phoneId={phone.phone_id}
          tenant={tenant}
        />
      )}
    </>
  )
}

type User = Phone['users'][number]

function Users({ phone, tenant }: { phone: Phone; tenant: string }) {
  const columns: Column<User>[] = [
    {
      id: 'user',
      head: 'User',
      cell: ({ user_id: id }) => (
        <Link params={{ tenant, userId: id }} to="/t/$tenant/users/$userId">
          <IdText value={id} />
        </Link>
      ),
    },
    {
      id: 'installs',
      head: 'Installs',
      numeric: true,
      cell: ({ installs }) => installs.toLocaleString('en'),
      width: '6rem',
    },
    {
      id: 'first',
      head: 'First seen',
      cell: (one) => <Time at={one.first_seen_at} />,
      width: '8rem',
    },
    { id: 'last', head: 'Last seen', cell: (one) => <Time at={one.last_seen_at} />, width: '8rem' },
  ]
  return (
    <Panel
      action={
        phone.users.length < phone.users_total && (
          <span className="text-muted">
            the latest {phone.users.length} of {counted(phone.users_total, 'user')}
          </span>
        )
      }
      title="Users"
    >
      {phone.users.length === 0 ? (
        <Empty title="No user was named" />
      ) : (
        <Table
          columns={columns}
          heightClass="max-h-96"
          label="Users"
          rowKey={({ user_id: id }) => id}
          rows={phone.users}
        />
      )}
    </Panel>
  )
}
