/**
 * Admin → Integrations → the tenant → Request log: the latest submissions as the edges answered
 * them, live, the chosen one in detail. The list stands still while the pointer is on it.
 */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { api, ok } from '../../api/client.ts'
import { ActionBadge, Badge } from '../../components/badge.tsx'
import { Select } from '../../components/field.tsx'
import { cutMiddle } from '../../components/id.tsx'
import { LiveSwitch, useLive } from '../../components/live-switch.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { toReasonText } from './reason-words.ts'
import { RequestDetail } from './request-detail.tsx'
import { type RequestRow, type Requests, toRows } from './requests.ts'

const refreshMs = 2_000
const outcomes = { all: 'All', accepted: 'Accepted', refused: 'Refused' } as const
type Outcome = keyof typeof outcomes

const columns: Column<RequestRow>[] = [
  { id: 'at', head: 'Time', cell: ({ at }) => <Time at={at} />, width: '5.5rem' },
  {
    id: 'answer',
    head: 'Answer',
    // The click reaches the row; the button takes the focus.
    cell: (row) => (
      <button className="flex w-full items-center gap-2 text-left" type="button">
        <Badge tone={row.status === 200 ? 'good' : 'bad'}>{row.status}</Badge>
        <span className="truncate">{toReasonText(row)}</span>
        {row.kind === 'registration' && <Badge>install</Badge>}
      </button>
    ),
    width: '15rem',
  },
  {
    id: 'action',
    head: 'Device score',
    cell: ({ rasp_action: action, rasp_score: score }) =>
      action === null ? (
        '–'
      ) : (
        <span className="inline-flex items-center gap-2">
          {score} <ActionBadge action={action} />
        </span>
      ),
    width: '7.5rem',
  },
  {
    id: 'device',
    head: 'Device',
    cell: (row) => <Text row={row} value={row.device_id} />,
  },
  {
    id: 'sdk',
    head: 'SDK',
    cell: (row) => <Text row={row} value={row.sdk_version} />,
    width: '6rem',
  },
  {
    id: 'edge',
    head: 'Edge',
    cell: ({ edge_id }) => <span className="font-mono text-sm">{cutMiddle(edge_id, 12)}</span>,
    width: '8rem',
  },
]

/** A text of the client; without a verified signature anyone can have written it. */
function Text({ row, value }: { row: RequestRow; value: string | null }) {
  if (value === null) return '–'
  return (
    <span className="relative font-mono text-sm" title={toVisible(value)}>
      {!row.verified && (
        <span className="text-warn" title="The signature was not verified">
          ?<span className="sr-only"> not verified </span>{' '}
        </span>
      )}
      <bdi>{cutMiddle(toVisible(value), 18)}</bdi>
    </span>
  )
}

export function Page() {
  const { tenant: tenantId = '' } = useParams({ strict: false })
  const [search, setSearch] = useUrlSearch()
  const outcome: Outcome =
    search.outcome === 'accepted' || search.outcome === 'refused' ? search.outcome : 'all'
  const live = useLive()
  const requests = useQuery({
    queryKey: ['requests', tenantId, outcome],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/requests', {
          params: { path: { tenant_id: tenantId }, query: { outcome } },
        }),
      ),
    refetchInterval: live ? refreshMs : false,
  })
  return (
    <Frame
      about={
        <>
          The latest submissions of{' '}
          <Link
            className="underline"
            params={{ tenant: tenantId }}
            to="/manage/integrations/$tenant"
          >
            {tenantId}
          </Link>{' '}
          and how they were answered. Edges keep the last 50 of each kind in memory; a restart
          forgets them.
        </>
      }
      controls={<LiveSwitch connected={!requests.isError} />}
      title="Request log"
    >
      <div className="w-44">
        <Select
          label="Show"
          onChange={({ target }) =>
            setSearch({ outcome: target.value === 'all' ? '' : target.value })
          }
          value={outcome}
        >
          {Object.entries(outcomes).map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      </div>
      <Loaded query={requests}>
        {(data) => (
          <Submissions
            chosen={search.request ?? ''}
            data={data}
            isFiltered={outcome !== 'all'}
            key={outcome}
            onChoose={(key) => setSearch({ request: key })}
            onClear={() => setSearch({ outcome: '' })}
            tenantId={tenantId}
          />
        )}
      </Loaded>
    </Frame>
  )
}

function Submissions({
  tenantId,
  data,
  isFiltered,
  chosen,
  onChoose,
  onClear,
}: {
  tenantId: string
  data: Requests
  isFiltered: boolean
  chosen: string
  onChoose: (key: string) => void
  onClear: () => void
}) {
  const [held, setHeld] = useState<Requests | null>(null)
  const newest = toRows(data)
  const rows = held === null ? newest : toRows(held)
  const shown = new Set(rows.map(({ key }) => key))
  const fresh = newest.filter(({ key }) => !shown.has(key)).length
  const row = [...newest, ...rows].find(({ key }) => key === chosen)
  return (
    <>
      <SilentEdges edges={data.silent_edges} />
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-[minmax(0,5fr)_minmax(0,3fr)]">
        <Panel
          action={
            fresh > 0 && (
              <span className="text-muted text-sm">
                {fresh.toLocaleString('en')} new when the pointer leaves
              </span>
            )
          }
          title="Submissions"
        >
          {rows.length === 0 ? (
            <NoRequests isFiltered={isFiltered} onClear={onClear} />
          ) : (
            <div onPointerEnter={() => setHeld(data)} onPointerLeave={() => setHeld(null)}>
              <Table
                columns={columns}
                heightClass="max-h-[calc(100dvh-19rem)]"
                label="Submissions"
                minWidth="49rem"
                onSelect={({ key }) => onChoose(key)}
                rowKey={({ key }) => key}
                rows={rows}
                selected={chosen}
              />
            </div>
          )}
          <Edges edges={data.edges} />
        </Panel>
        <Panel title="Details">
          {row === undefined ? (
            <Empty title={chosen === '' ? 'No submission is chosen' : 'It is no longer remembered'}>
              <p>Choose one to see its request id, its answer and, once accepted, its event.</p>
            </Empty>
          ) : (
            <RequestDetail row={row} tenantId={tenantId} />
          )}
        </Panel>
      </div>
    </>
  )
}

function NoRequests({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) {
    return (
      <Empty title="No such submission is remembered">
        <button className="text-accent-text underline" onClick={onClear} type="button">
          Show all
        </button>
      </Empty>
    )
  }
  return (
    <Empty title="No edge remembers a submission">
      <p>
        Send one with a program of the Integrations page. It appears here within two seconds, also
        when it is refused.
      </p>
    </Empty>
  )
}

function SilentEdges({ edges }: { edges: string[] }) {
  if (edges.length === 0) return null
  return (
    <div className="grid gap-1 rounded-md bg-warn-soft px-3 py-2 text-warn" role="status">
      {edges.map((edge) => (
        <p key={edge}>
          Edge <span className="font-mono text-sm break-all">{edge}</span> did not answer: what it
          received is missing here.
        </p>
      ))}
    </div>
  )
}

function Edges({ edges }: { edges: Requests['edges'] }) {
  if (edges.length === 0) return null
  return (
    <ul aria-label="Edges" className="grid gap-1 border-line border-t px-4 py-2 text-muted text-sm">
      {edges.map(({ edge_id, since, left_out: leftOut }) => (
        <li className="break-words" key={edge_id}>
          Edge <span className="font-mono">{edge_id}</span> remembers since <Time at={since} />
          {leftOut > 0 &&
            `; it left out ${leftOut.toLocaleString('en')} refused ones, of all tenants, that came too fast`}
        </li>
      ))}
    </ul>
  )
}
