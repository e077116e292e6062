/** Admin → Labels: what devices, users, sessions and events of a tenant turned out to be. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useTenant } from '../../api/tenants.ts'
import { Input, Select } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { TenantSelect } from '../../components/tenant-select.tsx'
import { LabelTable } from './label-table.tsx'
import {
  codesQuery,
  type LabelFilters,
  labelsKey,
  loadLabels,
  toLabelName,
  toLabelOptions,
} from './labels.ts'

const subjects = {
  device_id: 'Device',
  user_id: 'User or account',
  session_id: 'Session',
  event_id: 'Event',
} as const

export function Page() {
  const last = useTenant()
  const [search, change] = useUrlSearch()
  const { label, external_id, of = 'device_id', id } = search
  const tenant = search.tenant ?? last ?? ''
  const filters: LabelFilters = {
    ...(label ? { label } : {}),
    ...(external_id ? { external_id } : {}),
    ...(id && of in subjects ? { [of]: id } : {}),
  }
  const options = toLabelOptions(useQuery(codesQuery(tenant)).data?.data)
  const labels = useInfiniteQuery({
    queryKey: [...labelsKey(tenant), filters],
    queryFn: ({ pageParam }) => loadLabels(tenant, filters, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    enabled: tenant !== '',
  })
  return (
    <Frame
      about="What devices, users, sessions and events turned out to be. What was said of a session comes before what was said of its device or user, and fraud before legitimate. The latest label of a subject and case counts. Dispositions of alerts count as labels of their session, and are not listed here."
      title="Labels"
    >
      <search aria-label="Filters" className="grid gap-3 sm:grid-cols-3 xl:grid-cols-5">
        <TenantSelect onChange={(value) => change({ tenant: value })} value={tenant} />
        <Select
          label="Label"
          onChange={({ target }) => change({ label: target.value })}
          value={label ?? ''}
        >
          <option value="">Any</option>
          {options.map((code) => (
            <option key={code} value={code}>
              {toLabelName(code)}
            </option>
          ))}
        </Select>
        <Select label="Of" onChange={({ target }) => change({ of: target.value })} value={of}>
          {Object.entries(subjects).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </Select>
        <TextFilter label="Id" name="id" />
        <TextFilter label="Case" name="external_id" />
      </search>
      <Panel>
        {tenant === '' ? (
          <Empty title="No tenant yet" />
        ) : (
          <Loaded query={{ ...labels, data: labels.data?.pages.flatMap(({ data }) => data) }}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title="No label here">
                  <p>
                    Devices, users, sessions and events are labelled on their own pages, with a key
                    over <code>POST /v1/di/labels</code>, or from a file with{' '}
                    <code>di labels import</code>.
                  </p>
                </Empty>
              ) : (
                <LabelTable
                  onEnd={() => {
                    if (labels.hasNextPage && !labels.isFetching) void labels.fetchNextPage()
                  }}
                  rows={rows}
                  tenant={tenant}
                  withSubject
                />
              )
            }
          </Loaded>
        )}
      </Panel>
    </Frame>
  )
}

/** One text, in force on Enter or when the field is left. */
function TextFilter({ label, name }: { label: string; name: string }) {
  const [search, change] = useUrlSearch()
  const value = search[name] ?? ''
  const set = (text: string) => {
    if (text !== value) change({ [name]: text })
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        set(String(new FormData(event.currentTarget).get(name) ?? ''))
      }}
    >
      <Input
        defaultValue={value}
        key={value}
        label={label}
        mono
        name={name}
        onBlur={({ target }) => set(target.value)}
        spellCheck={false}
      />
    </form>
  )
}
