/** The deliveries of a tenant, newest first: the list left, the chosen one right. */

import { useInfiniteQuery } from '@tanstack/react-query'
import { deliveryStates } from '#shared/core/deliveries/delivery-states.ts'
import { api, ok } from '../../api/client.ts'
import type { Tenant } from '../../api/tenants.ts'
import { Badge } from '../../components/badge.tsx'
import { Input, Select } from '../../components/field.tsx'
import { cutMiddle } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { DeliveryDetail } from './delivery-detail.tsx'
import { deliveryTones, toShownState } from './delivery-words.ts'
import { type Delivery, deliveriesKey } from './webhook-actions.ts'

const pageRows = 100
const refreshMs = 3_000

/** The outcome of the last attempt: a status, or the kind of error. */
const lastOutcome = ({ attempts }: Delivery): string => {
  const last = attempts.at(-1)
  return String(last?.status ?? last?.error_kind ?? '–')
}

const columns: Column<Delivery>[] = [
  {
    id: 'state',
    head: 'State',
    cell: (delivery) => {
      const state = toShownState(delivery)
      return <Badge tone={deliveryTones[state]}>{state}</Badge>
    },
    width: '6.25rem',
  },
  {
    id: 'of',
    head: 'Alert',
    // The click reaches the row; the button takes the focus.
    cell: ({ alert_id, event }) => (
      <button className={alert_id === null ? 'text-muted' : 'font-mono text-sm'} type="button">
        {alert_id === null ? event : cutMiddle(alert_id, 18)}
      </button>
    ),
  },
  {
    id: 'attempts',
    head: 'Tries',
    cell: ({ attempts }) => attempts.length,
    numeric: true,
    width: '4rem',
  },
  { id: 'last', head: 'Last', cell: lastOutcome, width: '5rem' },
  {
    id: 'created',
    head: 'Created',
    cell: ({ created_at }) => <Time at={created_at} />,
    width: '6.75rem',
  },
]

export function Deliveries({ tenant }: { tenant: Tenant }) {
  const { tenant_id: tenantId } = tenant
  const [search, setSearch] = useUrlSearch()
  const state = deliveryStates.find((one) => one === search.state)
  const alertId = search.alert ?? ''
  const deliveries = useInfiniteQuery({
    queryKey: [...deliveriesKey(tenantId), state ?? '', alertId],
    queryFn: ({ pageParam }) =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/deliveries', {
          params: {
            path: { tenant_id: tenantId },
            query: {
              limit: pageRows,
              ...(state === undefined ? {} : { state }),
              ...(alertId === '' ? {} : { alert_id: alertId }),
              ...(pageParam === '' ? {} : { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
    // Further pages stay as they were read: only the newest is watched.
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 1) > 1 ? false : refreshMs),
  })
  const rows = { ...deliveries, data: deliveries.data?.pages.flatMap(({ data }) => data) }
  const chosen = search.delivery ?? ''
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
      <Panel>
        <div className="grid gap-3 border-line border-b p-3 sm:grid-cols-[10rem_1fr]">
          <Select
            label="State"
            onChange={({ target }) => setSearch({ state: target.value })}
            value={state ?? ''}
          >
            <option value="">All</option>
            {deliveryStates.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </Select>
          <Input
            label="Alert"
            mono
            onChange={({ target }) => setSearch({ alert: target.value.trim() })}
            placeholder="alr_…"
            spellCheck={false}
            value={alertId}
          />
        </div>
        <Loaded query={rows}>
          {(data) =>
            data.length === 0 ? (
              <NoDeliveries
                filtered={state !== undefined || alertId !== ''}
                onClear={() => setSearch({ state: '', alert: '' })}
                url={tenant.webhook_url}
              />
            ) : (
              <Table
                columns={columns}
                heightClass="max-h-[calc(100dvh-16rem)]"
                label="Deliveries"
                minWidth="30rem"
                onEnd={() => {
                  if (deliveries.hasNextPage && !deliveries.isFetchingNextPage) {
                    void deliveries.fetchNextPage()
                  }
                }}
                onSelect={({ delivery_id }) => setSearch({ delivery: delivery_id })}
                rowKey={({ delivery_id }) => delivery_id}
                rows={data}
                selected={chosen}
              />
            )
          }
        </Loaded>
      </Panel>
      {chosen === '' ? (
        <Panel>
          <Empty title="No delivery is chosen">
            <p>Choose one to see what was sent at each attempt and what the receiver answered.</p>
          </Empty>
        </Panel>
      ) : (
        <DeliveryDetail deliveryId={chosen} key={chosen} tenant={tenant} />
      )}
    </div>
  )
}

function NoDeliveries({
  filtered,
  onClear,
  url,
}: {
  filtered: boolean
  onClear: () => void
  url: string | null
}) {
  if (filtered) {
    return (
      <Empty title="No delivery matches">
        <button className="text-accent-text underline" onClick={onClear} type="button">
          Show all
        </button>
      </Empty>
    )
  }
  return (
    <Empty title="Nothing was delivered yet">
      <p>
        {url === null
          ? 'Set the URL of a receiver above, then send a test event.'
          : 'Send a test event to see whether the receiver verifies it and answers 2xx.'}
      </p>
    </Empty>
  )
}
