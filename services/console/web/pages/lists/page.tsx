/** Lists: the devices, users, networks, operators and countries that a tenant allows or denies. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Input, Select } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { useMay } from '../../shell/operator.ts'
import { AddEntry } from './add-entry.tsx'
import { EntryTable } from './entry-table.tsx'
import { type ListFilters, listKinds, listNames, listsKey, loadEntries } from './lists.ts'

const filterNames = ['list', 'kind', 'state', 'id'] as const
const kinds = Object.fromEntries(
  Object.entries(listKinds).map(([kind, { plural }]) => [kind, plural]),
)
const states = { active: 'Active', expired: 'Expired' }

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const [search] = useUrlSearch()
  const [adding, setAdding] = useState(false)
  const mayChange = useMay('analyst')
  const filters = Object.fromEntries(
    filterNames.flatMap((name) => (search[name] ? [[name, search[name]]] : [])),
  ) as ListFilters
  const entries = useInfiniteQuery({
    queryKey: [...listsKey(tenant), filters],
    queryFn: ({ pageParam }) => loadEntries(tenant, filters, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  })
  const total = entries.data?.pages[0]?.total
  return (
    <Frame
      about="An event of a denied device, user, network, operator or country is BLOCK; one of an allowed device or user is ALLOW. An allowed network, operator or country only keeps the connection from counting. Deny beats allow, and every edge acts on a change within a second."
      action={
        mayChange && (
          <Button icon="plus" look="primary" onClick={() => setAdding(true)}>
            Add an entry
          </Button>
        )
      }
      title="Lists"
    >
      <search aria-label="Filters" className="grid gap-3 sm:grid-cols-2 xl:grid-cols-4">
        <Choice label="List" name="list" texts={listNames} />
        <Choice label="Kind" name="kind" texts={kinds} />
        <Choice label="State" name="state" texts={states} />
        <IdFilter />
      </search>
      <Panel {...(total === undefined ? {} : { title: `${total.toLocaleString('en')} entries` })}>
        <Loaded query={{ ...entries, data: entries.data?.pages.flatMap(({ data }) => data) }}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No entry here">
                <p>
                  Devices, users, networks, operators and countries can be put on a list here, and
                  devices and users from their own pages.
                </p>
              </Empty>
            ) : (
              <EntryTable
                onEnd={() => {
                  if (entries.hasNextPage && !entries.isFetching) void entries.fetchNextPage()
                }}
                rows={rows}
                tenant={tenant}
                withId
              />
            )
          }
        </Loaded>
      </Panel>
      {adding && <AddEntry onClose={() => setAdding(false)} tenant={tenant} />}
    </Frame>
  )
}

/** One of some values, or any; `texts` names each. */
function Choice({
  label,
  name,
  texts,
}: {
  label: string
  name: string
  texts: Record<string, string>
}) {
  const [search, change] = useUrlSearch()
  return (
    <Select
      label={label}
      onChange={({ target }) => change({ [name]: target.value })}
      value={search[name] ?? ''}
    >
      <option value="">Any</option>
      {Object.entries(texts).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </Select>
  )
}

/** One id, in force on Enter or when the field is left. */
function IdFilter() {
  const [{ id = '' }, change] = useUrlSearch()
  const set = (text: string) => {
    if (text !== id) change({ id: text })
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        set(String(new FormData(event.currentTarget).get('id') ?? ''))
      }}
    >
      <Input
        defaultValue={id}
        key={id}
        label="Id"
        mono
        name="id"
        onBlur={({ target }) => set(target.value)}
        spellCheck={false}
      />
    </form>
  )
}
