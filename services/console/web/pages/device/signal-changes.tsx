/** When the signals of a device appeared, went and came back, and in which session. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Id, IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time/time.tsx'

type Changes = AnswerOf<'/admin/v1/tenants/{tenant_id}/devices/{device_id}/signal-changes', 'get'>
type Change = Changes['data'][number]
type Signal = Changes['signals'][number]

export function SignalChanges({ tenant, deviceId }: { tenant: string; deviceId: string }) {
  const changes = useQuery({
    queryKey: ['signal-changes', tenant, deviceId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}/signal-changes', {
          params: { path: { tenant_id: tenant, device_id: deviceId } },
        }),
      ),
  })
  return (
    <Panel
      action={
        changes.data !== undefined &&
        changes.data.total > changes.data.data.length && (
          <span className="text-muted">
            the latest {changes.data.data.length} of {changes.data.total.toLocaleString('en')}
          </span>
        )
      }
      title="Signal changes"
    >
      <Loaded query={changes}>{(found) => <Found changes={found} tenant={tenant} />}</Loaded>
    </Panel>
  )
}

function Found({ tenant, changes }: { tenant: string; changes: Changes }) {
  if (changes.signals.length === 0) {
    return <Empty title="No signal was ever detected">Its sessions had nothing to report.</Empty>
  }
  return (
    <div className="px-4 pt-1 pb-3">
      <Tabs
        name="signals"
        tabs={[
          {
            id: 'timeline',
            label: 'Timeline',
            content: (
              <Table
                columns={changeColumns(tenant)}
                heightClass="max-h-96"
                label="Signal changes"
                minWidth="50rem"
                rowKey={(one) => `${one.event_id} ${one.signal} ${one.change}`}
                rows={changes.data}
              />
            ),
          },
          {
            id: 'all',
            label: 'By signal',
            content: (
              <Table
                columns={signalColumns}
                heightClass="max-h-96"
                label="Signals"
                minWidth="60rem"
                rowKey={({ signal }) => signal}
                rows={changes.signals}
              />
            ),
          },
        ]}
      />
      {changes.complete_from !== null && (
        <p className="pt-3 text-muted">
          This device changes very often. Before <Time at={changes.complete_from} exact /> only the
          first detection of each signal is shown.
        </p>
      )}
    </div>
  )
}

const up = 'M5 .5l4.8 9h-9.6z'
const down = 'M5 9.5l4.8-9h-9.6z'

const looks: Record<Change['change'], { word: string; path: string; tone: Tone }> = {
  appeared: { word: 'appeared', path: up, tone: 'bad' },
  returned: { word: 'came back', path: up, tone: 'bad' },
  went: { word: 'went', path: down, tone: 'good' },
}

function ChangeBadge({ change }: { change: Change['change'] }) {
  const { word, path, tone } = looks[change]
  const shape = (
    <svg aria-hidden="true" fill="currentColor" height="9" viewBox="0 0 10 10" width="9">
      <path d={path} />
    </svg>
  )
  return (
    <Badge shape={shape} tone={tone}>
      {word}
    </Badge>
  )
}

const changeColumns = (tenant: string): Column<Change>[] => [
  {
    id: 'change',
    head: 'Change',
    cell: ({ change }) => <ChangeBadge change={change} />,
    width: '8rem',
  },
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal, event_id: id }) => (
      <Link
        className="font-mono text-sm"
        params={{ tenant, eventId: id }}
        to="/t/$tenant/events/$eventId"
      >
        <IdText value={signal} />
      </Link>
    ),
  },
  { id: 'at', head: 'When', cell: ({ at }) => <Time at={at} exact />, width: '14rem' },
  {
    id: 'session',
    head: 'Session',
    cell: ({ session_id: id }) => <Id value={id} />,
    width: '13rem',
  },
]

const signalColumns: Column<Signal>[] = [
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal }) => (
      <span className="font-mono text-sm">
        <IdText value={signal} />
      </span>
    ),
  },
  {
    id: 'state',
    head: 'Last measured',
    cell: ({ state }) =>
      state === null ? (
        <span className="text-muted" title="Kept for signals of the grades high and critical">
          not kept
        </span>
      ) : (
        <span className={state === 'detected' ? 'text-bad' : 'text-good'}>{state}</span>
      ),
    width: '9rem',
  },
  {
    id: 'first',
    head: 'First detected',
    cell: (one) => <Time at={one.first_detected_at} exact />,
    width: '14rem',
  },
  {
    id: 'session',
    head: 'In session',
    cell: ({ first_session_id: id }) => <Id value={id} />,
    width: '13rem',
  },
  {
    id: 'last',
    head: 'Last detected',
    cell: (one) => <Time at={one.last_detected_at} />,
    width: '8rem',
  },
]
