/** Devices that share users or sessions with one, and users that share devices: list and graph. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { entityLink } from './entity-link.ts'
import { LinkGraph } from './graph/link-graph.tsx'
import { toAlertsText } from './graph/nodes.ts'

type LinksAnswer = AnswerOf<'/admin/v1/tenants/{tenant_id}/devices/{device_id}/links', 'get'>
type Linked = LinksAnswer['data'][number]
type Subject = { tenant: string; kind: 'device' | 'user'; id: string }

/** Ids that stand in one cell; how many more there are follows. */
const shownInCell = 2

export function Links(subject: Subject) {
  const { tenant, kind, id } = subject
  const links = useQuery({
    queryKey: ['links', tenant, kind, id],
    queryFn: () => readLinks(subject),
  })
  return (
    <Panel
      action={
        links.data !== undefined &&
        links.data.total > links.data.data.length && (
          <span className="text-muted">
            the first {links.data.data.length} of {counted(links.data.total, kind)}
          </span>
        )
      }
      title={`Linked ${kind}s`}
    >
      <Loaded query={links}>{(found) => <Found links={found} subject={subject} />}</Loaded>
    </Panel>
  )
}

function readLinks({ tenant, kind, id }: Subject): Promise<LinksAnswer> {
  return kind === 'device'
    ? ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}/links', {
          params: { path: { tenant_id: tenant, device_id: id } },
        }),
      )
    : ok(
        api.GET('/admin/v1/tenants/{tenant_id}/users/{user_id}/links', {
          params: { path: { tenant_id: tenant, user_id: id } },
        }),
      )
}

function Found({ links, subject }: { links: LinksAnswer; subject: Subject }) {
  const { kind } = subject
  const isDevice = kind === 'device'
  return (
    <>
      {links.data.length === 0 ? (
        <Empty title={`No other ${kind} is linked`}>
          {isDevice
            ? 'A device is linked when it shares a user, an account or a session with this one.'
            : 'A user is linked when it was seen on a device of this one.'}
        </Empty>
      ) : (
        <div className="px-4 pt-1 pb-3">
          <Tabs
            name="links"
            tabs={[
              {
                id: 'list',
                label: 'List',
                content: (
                  <Table
                    columns={columnsOf(subject, links.alerts)}
                    heightClass="max-h-96"
                    label={`Linked ${kind}s`}
                    minWidth="56rem"
                    rowKey={(one) => one.id}
                    rows={links.data}
                  />
                ),
              },
              {
                id: 'graph',
                label: 'Graph',
                content: (
                  <LinkGraph
                    alerts={links.alerts}
                    linked={links.data}
                    subject={subject}
                    tenant={subject.tenant}
                    total={links.total}
                  />
                ),
              },
            ]}
          />
        </div>
      )}
      <Limits links={links} subject={subject} />
    </>
  )
}

/** What was not read, where that is so. */
function Limits({ links, subject: { kind } }: { links: LinksAnswer; subject: Subject }) {
  const { complete, followed, sessions_searched: searched } = links
  if (complete && searched) return null
  const sources = kind === 'device' ? 'user' : 'device'
  return (
    <p className="border-line border-t px-4 py-3 text-muted">
      {followed.read < followed.of
        ? `There may be more: links were followed from the latest ${counted(followed.read, sources)} out of ${followed.of.toLocaleString('en')}. `
        : !complete && `There may be more: only the ${kind}s that were seen latest were read. `}
      {!searched && 'Sessions in common were not all searched, because there are too many.'}
    </p>
  )
}

const columnsOf = ({ tenant, kind }: Subject, alerts: LinksAnswer['alerts']): Column<Linked>[] => {
  const isDevice = kind === 'device'
  const other = isDevice ? 'user' : 'device'
  return [
    {
      id: 'linked',
      head: isDevice ? 'Device' : 'User',
      cell: ({ id }) => (
        <Link {...entityLink(kind, tenant, id)}>
          <IdText value={id} />
        </Link>
      ),
    },
    {
      id: 'shared',
      head: isDevice ? 'Users in common' : 'Devices in common',
      cell: ({ shared, shared_total: total }) =>
        total === 0 ? (
          <span className="text-muted">none</span>
        ) : (
          <>
            {shared.slice(0, shownInCell).map(({ id }, at) => (
              <span key={id}>
                {at > 0 && ', '}
                <Link {...entityLink(other, tenant, id)}>
                  <IdText value={id} />
                </Link>
              </span>
            ))}
            {total > shownInCell && ` and ${(total - shownInCell).toLocaleString('en')} more`}
          </>
        ),
      width: '40%',
    },
    ...(isDevice
      ? [
          {
            id: 'sessions',
            head: 'Sessions in common',
            numeric: true,
            cell: ({ sessions }: Linked) => sessions.toLocaleString('en'),
            width: '10rem',
          },
        ]
      : []),
    {
      id: 'alerts',
      head: 'Risk and alerts',
      cell: ({ id }) => toAlertsText(alerts.find((one) => one.kind === kind && one.id === id)),
      width: '14rem',
    },
    {
      id: 'last',
      head: 'Last seen',
      cell: ({ last_seen_at: at }) => <Time at={at} />,
      width: '8rem',
    },
  ]
}
