/** Admin → Audit: who did what, with what it was before and after. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { tenantsQuery } from '../../api/tenants.ts'
import { Button } from '../../components/button.tsx'
import { controlClasses } from '../../components/field.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { TimeRange } from '../../components/time/time-range.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { FilterBar, type Filters, useClear, useFilters } from './filters.tsx'

type Row = AnswerOf<'/admin/v1/audit', 'get'>['data'][number]

const pageRows = 200

/** Choices of the log that are no slugs: a slug begins with a letter or a digit. */
const wholeLog = '*'
const consoleLog = '-'

const columns: Column<Row>[] = [
  { id: 'at', head: 'When', cell: ({ at }) => <Time at={at} />, width: '8rem' },
  { id: 'actor', head: 'Who', cell: ({ actor }) => actor },
  { id: 'action', head: 'What', cell: ({ action }) => action },
  { id: 'tenant', head: 'Tenant', cell: ({ tenant_id }) => tenant_id ?? '', width: '10rem' },
]

/** A page of the log; `of` is a tenant, or one of the choices for administrators of all tenants. */
function loadPage(tenant: string, filters: Filters, cursor: string | undefined) {
  const query = { limit: pageRows, ...filters, ...(cursor === undefined ? {} : { cursor }) }
  if (tenant === wholeLog || tenant === consoleLog) {
    const tenants = tenant === wholeLog ? ('all' as const) : ('none' as const)
    return ok(api.GET('/admin/v1/audit', { params: { query: { ...query, tenants } } }))
  }
  const path = { tenant_id: tenant }
  return ok(api.GET('/admin/v1/tenants/{tenant_id}/audit', { params: { path, query } }))
}

export function Page() {
  const { operator } = useSignedIn()
  const seesAll = operator.role === 'admin' && operator.tenants === 'all'
  const [search, change] = useUrlSearch()
  const { data: tenants = [] } = useQuery(tenantsQuery)
  const of = search.of ?? (seesAll ? wholeLog : (tenants[0]?.tenant_id ?? ''))
  const filters = useFilters()
  const log = useInfiniteQuery({
    queryKey: ['audit', of, filters],
    queryFn: ({ pageParam }) => loadPage(of, filters, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    enabled: of !== '',
    // While a filter changes the rows stay; those of another log would be taken for this one's.
    placeholderData: (before, query) => (query?.queryKey[1] === of ? before : undefined),
  })
  const rows = log.data?.pages.flatMap(({ data }) => data)
  const chosen = rows?.find(({ audit_id }) => String(audit_id) === search.row)
  return (
    <Frame
      controls={
        <>
          <select
            aria-label="Log"
            className={`${controlClasses} h-8 w-auto!`}
            onChange={({ target }) => change({ of: target.value, row: '' })}
            value={of}
          >
            {seesAll && <option value={wholeLog}>Everything</option>}
            {seesAll && <option value={consoleLog}>Operators and sign-ins</option>}
            {tenants.map(({ tenant_id }) => (
              <option key={tenant_id} value={tenant_id}>
                {tenant_id}
              </option>
            ))}
          </select>
          <TimeRange usual="any" />
        </>
      }
      title="Audit"
    >
      <FilterBar seesAll={seesAll} />
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-[3fr_2fr]">
        <Panel>
          <Loaded query={{ ...log, data: rows }}>
            {(shown) =>
              shown.length === 0 ? (
                <NoEntries />
              ) : (
                <Table
                  columns={columns}
                  label="Audit log"
                  onEnd={() => {
                    if (log.hasNextPage && !log.isFetching) void log.fetchNextPage()
                  }}
                  onSelect={({ audit_id }) => change({ row: String(audit_id) })}
                  rowKey={({ audit_id }) => String(audit_id)}
                  rows={shown}
                  selected={search.row ?? ''}
                />
              )
            }
          </Loaded>
        </Panel>
        {chosen === undefined ? (
          rows !== undefined && rows.length > 0 && <Hint />
        ) : (
          <Entry row={chosen} />
        )}
      </div>
    </Frame>
  )
}

function NoEntries() {
  const [isFiltered, clear] = useClear()
  if (!isFiltered) return <Empty title="Nothing happened here yet" />
  return (
    <Empty title="No entry matches the filters">
      <p>A wider time range or fewer filters show more.</p>
      <Button onClick={clear}>Clear the filters</Button>
    </Empty>
  )
}

const Hint = () => (
  <Panel>
    <Empty title="No entry is chosen">
      <p>Choose one to see what it was before and after.</p>
    </Empty>
  </Panel>
)

function Entry({ row }: { row: Row }) {
  const text = (value: unknown) => JSON.stringify(value, null, 2)
  return (
    <Panel title={row.action}>
      <Facts
        facts={[
          ['When', <Time at={row.at} exact key="at" />],
          ['Who', row.actor],
          ['Tenant', row.tenant_id ?? 'none'],
          ['Entry', row.audit_id],
        ]}
      />
      <div className="grid grid-cols-1 gap-3 p-4 pt-0">
        {row.before !== null && (
          <>
            <h3 className="font-medium">Before</h3>
            <CodeBlock code={text(row.before)} label="Before" />
          </>
        )}
        {row.after !== null && (
          <>
            <h3 className="font-medium">After</h3>
            <CodeBlock code={text(row.after)} label="After" />
          </>
        )}
      </div>
    </Panel>
  )
}
