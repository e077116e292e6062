/** Which signals a device has ever had, since when, and what it was when it was last measured. */
import { useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Id, IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'

type Changes = AnswerOf<'/admin/v1/tenants/{tenant_id}/devices/{device_id}/signal-changes', 'get'>
type Signal = Changes['signals'][number]

export function Signals({ tenant, deviceId }: { tenant: string; deviceId: string }) {
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
    <Panel title="Signals">
      <Loaded query={changes}>{(found) => <Found changes={found} />}</Loaded>
    </Panel>
  )
}

function Found({ changes }: { changes: Changes }) {
  if (changes.signals.length === 0) {
    return <Empty title="No signal was ever detected">Its sessions had nothing to report.</Empty>
  }
  return (
    <Table
      columns={signalColumns}
      heightClass="max-h-96"
      label="Signals"
      minWidth="60rem"
      rowKey={({ signal }) => signal}
      rows={changes.signals}
    />
  )
}

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
