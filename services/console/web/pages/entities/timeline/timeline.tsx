/** What happened with a device, a user or a phone, from every store in one order, newest first. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { type TimelineKind, timelineKinds } from '#shared/core/devices/timeline.ts'
import { api, ok } from '../../../api/client.ts'
import { Badge } from '../../../components/badge.tsx'
import { Button } from '../../../components/button.tsx'
import { Panel } from '../../../components/page.tsx'
import { useUrlState } from '../../../components/state/url-state.ts'
import { Empty, Loaded } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { Time } from '../../../components/time/time.tsx'
import { ChoiceFilter } from '../../alerts/filters/choice-filter.tsx'
import { type Entry, EntryText, kindTexts } from './entries.tsx'
import { timelineKey } from './key.ts'

export type TimelineSubject = { kind: 'device' | 'user' | 'phone'; id: string }

const pageRows = 100

export function Timeline({ tenant, subject }: { tenant: string; subject: TimelineSubject }) {
  const [chosen] = useUrlState('kinds')
  const timeline = useInfiniteQuery({
    queryKey: [...timelineKey(tenant), subject, chosen],
    queryFn: ({ pageParam }) => readPage(tenant, subject, { kinds: chosen, cursor: pageParam }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }) => next,
    // Alerts are judged on other pages.
    staleTime: 0,
  })
  const pages = timeline.data?.pages
  const rows = { ...timeline, data: pages?.flatMap(({ data }) => data) }
  const loadMore = () => {
    if (timeline.hasNextPage && !timeline.isFetchingNextPage) void timeline.fetchNextPage()
  }
  return (
    <Panel
      action={
        <ChoiceFilter
          label="Kind"
          name="kinds"
          values={timelineKinds.map((kind) => [kind, kindTexts[kind]] as const)}
        />
      }
      title="Timeline"
    >
      <Incomplete kinds={pages?.at(-1)?.incomplete ?? []} onRetry={() => void timeline.refetch()} />
      <Loaded query={rows}>
        {(data) =>
          data.length === 0 ? (
            <Empty title={chosen === '' ? 'Nothing has happened yet' : 'Nothing of these kinds'} />
          ) : (
            <Table
              columns={toColumns(tenant, subject.kind !== 'device')}
              heightClass="max-h-[32rem]"
              label="Timeline"
              minWidth="56rem"
              onEnd={loadMore}
              rowKey={({ kind, id }) => `${kind} ${id}`}
              rows={data}
            />
          )
        }
      </Loaded>
      {timeline.hasNextPage && (
        <p className="border-line border-t p-2 text-center">
          <Button busy={timeline.isFetchingNextPage} onClick={loadMore} small>
            Earlier
          </Button>
        </p>
      )}
    </Panel>
  )
}

type Incomplete = { kind: TimelineKind; state: 'unavailable' | 'partial'; detail: string }

/** What is not in the list, so that nobody takes a part for all. */
function Incomplete({ kinds, onRetry }: { kinds: Incomplete[]; onRetry: () => void }) {
  const gone = kinds.filter(({ state }) => state === 'unavailable')
  const partial = kinds.filter(({ state }) => state === 'partial')
  return (
    <>
      {gone.length > 0 && (
        <div
          className="flex flex-wrap items-center gap-2 border-line border-b bg-warn-soft px-4 py-2 text-warn"
          role="status"
        >
          <span className="min-w-0 flex-1">
            {`Not here, because it cannot be read at the moment: ${gone.map(({ kind }) => kindTexts[kind]).join(', ')}.`}
          </span>
          <Button onClick={onRetry} small>
            Try again
          </Button>
        </div>
      )}
      {partial.map(({ kind, detail }) => (
        <p className="border-line border-b px-4 py-2 text-muted" key={kind}>
          {`${kindTexts[kind]}: ${detail}`}
        </p>
      ))}
    </>
  )
}

function readPage(
  tenant: string,
  { kind, id }: TimelineSubject,
  { kinds, cursor }: { kinds: string; cursor: string },
) {
  const query = {
    limit: pageRows,
    ...(kinds === '' ? {} : { kinds }),
    ...(cursor === '' ? {} : { cursor }),
  }
  const own = { tenant_id: tenant }
  if (kind === 'device') {
    const path = { ...own, device_id: id }
    return ok(
      api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}/timeline', {
        params: { path, query },
      }),
    )
  }
  if (kind === 'user') {
    const path = { ...own, user_id: id }
    return ok(
      api.GET('/admin/v1/tenants/{tenant_id}/users/{user_id}/timeline', {
        params: { path, query },
      }),
    )
  }
  const path = { ...own, phone_id: id }
  return ok(
    api.GET('/admin/v1/tenants/{tenant_id}/phones/{phone_id}/timeline', {
      params: { path, query },
    }),
  )
}

const toColumns = (tenant: string, withDevice: boolean): Column<Entry>[] => [
  { id: 'at', head: 'When', cell: ({ at }) => <Time at={at} exact />, width: '14rem' },
  {
    id: 'kind',
    head: 'Kind',
    cell: ({ kind }) => <Badge>{kindTexts[kind]}</Badge>,
    width: '8rem',
  },
  {
    id: 'what',
    head: 'What',
    cell: (entry) => <EntryText entry={entry} tenant={tenant} withDevice={withDevice} />,
  },
  {
    id: 'by',
    head: 'By',
    cell: (entry) =>
      'by' in entry ? (
        <span className="block truncate" title={entry.by}>
          {entry.by}
        </span>
      ) : (
        <span className="text-muted">–</span>
      ),
    width: '11rem',
  },
]
