/** Reconciliation: what each stage did with the events of an hour, and where they differ. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../api/client.ts'
import { Badge } from '../components/badge.tsx'
import { Id } from '../components/id.tsx'
import { LiveSwitch, useLive } from '../components/live-switch.tsx'
import { Page as Frame, Panel } from '../components/page.tsx'
import { useUrlState } from '../components/state/url-state.ts'
import { Empty, Loaded } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Time, useExact } from '../components/time/time.tsx'
import { TimeRange, useTimeRange } from '../components/time/time-range.tsx'

type Reconciliation = AnswerOf<'/admin/v1/tenants/{tenant_id}/reconciliation', 'get'>
type Hour = Reconciliation['data'][number]

const liveMs = 10_000
const toCount = (value: number) => value.toLocaleString('en')

/** The stages in the order in which an event passes through them. */
const counts: [key: keyof Hour & string, head: string, about: string][] = [
  ['accepted', 'Accepted', 'answered with a 200 by an edge, repeats included'],
  ['stored', 'Stored', 'in the messages of the stream, repeats included'],
  ['repeats', 'Repeats', 'the same bytes again: they have no row of their own'],
  ['rows', 'Rows', 'in the history'],
  ['decided', 'Decided', 'decided by the scorer, repeats included'],
  ['alerts', 'Alerts', 'raised by events of the hour'],
  ['deliveries', 'Deliveries', 'of those alerts'],
  ['delivered', 'Delivered', 'of those deliveries'],
  ['in_flight', 'In flight', 'not decided yet, and in no other number'],
]

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const { from, to } = useTimeRange()
  const live = useLive()
  const [only, setOnly] = useUrlState('show', 'all')
  const answer = useQuery({
    queryKey: ['reconciliation', tenant, from, to],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/reconciliation', {
          params: { path: { tenant_id: tenant }, query: to === null ? { from } : { from, to } },
        }),
      ),
    refetchInterval: live ? liveMs : false,
    placeholderData: (before) => before,
  })
  return (
    <Frame
      about="Each stage counts its own events. While all agree, nothing that was accepted is lost and nothing is decided twice."
      controls={
        <>
          <TimeRange />
          <LiveSwitch />
        </>
      }
      title="Reconciliation"
    >
      <Loaded query={answer}>
        {(reconciliation) => (
          <>
            <Verdict reconciliation={reconciliation} />
            <Differences hours={reconciliation.data} />
            <Panel
              action={
                <label className="flex items-center gap-2">
                  <input
                    checked={only === 'differences'}
                    className="size-4 accent-accent"
                    onChange={({ target }) => setOnly(target.checked ? 'differences' : 'all')}
                    type="checkbox"
                  />
                  Only hours that differ
                </label>
              }
              title="By hour"
            >
              <Hours
                hours={reconciliation.data.filter(
                  ({ differences }) => only === 'all' || differences.length > 0,
                )}
                only={only !== 'all'}
              />
            </Panel>
          </>
        )}
      </Loaded>
    </Frame>
  )
}

function Verdict({
  reconciliation: { agrees, as_of: asOf, data },
}: {
  reconciliation: Reconciliation
}) {
  const differing = data.filter(({ differences }) => differences.length > 0).length
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 rounded-lg border border-line bg-raised px-4 py-3">
      {agrees ? (
        <Badge tone="good">all stages agree</Badge>
      ) : (
        <Badge tone="bad">
          {differing} {differing === 1 ? 'hour differs' : 'hours differ'}
        </Badge>
      )}
      <span className="text-muted">
        {asOf === null ? (
          'Nothing was compared yet.'
        ) : (
          <>
            Compared up to <Time at={asOf} exact />
          </>
        )}
      </span>
    </div>
  )
}

function Differences({ hours }: { hours: Hour[] }) {
  const toText = useExact()
  const rows = hours.flatMap(({ hour, differences }) =>
    differences.map((difference) => ({ hour, ...difference })),
  )
  if (rows.length === 0) return null
  return (
    <Panel title="Differences">
      <ul className="divide-y divide-line">
        {rows.map(({ hour, stage, kind, count, ids }) => (
          <li className="grid gap-1.5 px-4 py-3" key={`${hour} ${stage} ${kind}`}>
            <p>
              <strong className="font-semibold">
                {toCount(count)} {stage} {kind}
              </strong>{' '}
              <span className="text-muted">
                in the hour from {toText(hour)}: {explain(stage, kind)}
              </span>
            </p>
            {ids.length > 0 && (
              <div className="flex flex-wrap gap-x-3">
                {ids.map((id) => (
                  <Id key={id} value={id} />
                ))}
              </div>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const missing: Record<string, string> = {
  accepted: 'edges answered 200 and the stream has no such event',
  rows: 'the stream has the events and the history does not',
  decisions: 'the events are stored and were not decided',
  alerts: 'events deserved alerts that do not exist',
  deliveries: 'the alerts have no delivery',
}

const explain = (stage: string, kind: string): string =>
  kind === 'unexplained'
    ? 'they are there and nothing explains them'
    : (missing[stage] ?? 'expected but absent')

function Hours({ hours, only }: { hours: Hour[]; only: boolean }) {
  const toText = useExact()
  if (hours.length === 0) {
    return only ? (
      <Empty title="No hour differs">Every stage agrees in this time.</Empty>
    ) : (
      <Empty title="No events in this time">
        Choose a longer time at the top right, or send telemetry first.
      </Empty>
    )
  }
  const columns: Column<Hour>[] = [
    { id: 'hour', head: 'Hour', width: '13rem', cell: ({ hour }) => toText(hour) },
    {
      id: 'state',
      head: 'State',
      width: '7rem',
      cell: ({ differences, expired }) => {
        if (differences.length > 0) return <Badge tone="bad">differs</Badge>
        return expired ? <Badge>expired</Badge> : <Badge tone="good">agrees</Badge>
      },
    },
    ...counts.map(
      ([key, head, about]): Column<Hour> => ({
        id: key,
        head: <span title={about}>{head}</span>,
        numeric: true,
        cell: (hour) => toCount(hour[key] as number),
      }),
    ),
  ]
  return (
    <Table
      columns={columns}
      label="Reconciliation by hour"
      minWidth="68rem"
      rowKey={({ hour }) => hour}
      rows={hours}
    />
  )
}
