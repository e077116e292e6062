/** The left pane: how many alerts there are, what can be done with all of them, and the list. */
import { useState } from 'react'
import { prefix } from '../../api/client.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { LiveSwitch, useLive } from '../../components/live-switch.tsx'
import { Menu, MenuItem } from '../../components/menu.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Failed, Refused, SkeletonRows, Waiting } from '../../components/states.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import { counted } from '../../components/words.ts'
import { useMay } from '../../shell/operator.ts'
import type { Alert } from '../alert/alert.ts'
import type { BulkSets } from './bulk/bulk-dialog.tsx'
import type { useBulkJob } from './bulk/bulk-jobs.ts'
import { BulkProgress } from './bulk/bulk-progress.tsx'
import { BulkDialog } from './bulk/lazy-bulk-dialog.tsx'
import { replaceFilters, toQuery } from './filters/filter-values.ts'
import { AlertList } from './list/alert-list.tsx'
import type { useAlertList } from './list/use-alert-list.ts'
import { useNewAlerts } from './live/use-new-alerts.ts'

type List = ReturnType<typeof useAlertList>

export function ListPane({
  tenant,
  filters,
  list,
  alerts,
  openId,
  bulk: { job, error, watch },
  checked,
  onOpen,
  onCheck,
}: {
  tenant: string
  filters: Record<string, string>
  list: List
  alerts: readonly Alert[]
  openId: string
  bulk: ReturnType<typeof useBulkJob>
  checked: ReadonlySet<string>
  onOpen: (alertId: string) => void
  onCheck: (alertId: string, toHere?: boolean) => void
}) {
  const fresh = useNewAlerts(tenant, useLive())
  const total = list.data?.pages[0]?.total ?? 0
  const readAgain = () => {
    fresh.see()
    void list.refetch()
  }
  const loadMore = () => {
    if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage()
  }
  return (
    <>
      <div className="flex h-10 shrink-0 items-center gap-1 border-line border-b pr-2 pl-4">
        {list.data && (
          <span className="text-muted" role="status">
            {counted(total, 'alert')}
          </span>
        )}
        {fresh.count > 0 && (
          <Button className="ml-1" look="primary" onClick={readAgain} small>
            {fresh.count.toLocaleString('en')} new
          </Button>
        )}
        <span className="ml-auto" />
        <LiveSwitch connected={fresh.connected} />
        {total > 0 && <AllMenu filters={filters} onStarted={watch} tenant={tenant} total={total} />}
        <IconButton disabled={list.isFetching} icon="refresh" label="Refresh" onClick={readAgain} />
      </div>
      {job && <BulkProgress job={job} onClose={() => watch('')} onUndo={watch} />}
      {error !== null && <Refused error={error} />}
      {list.data === undefined ? (
        list.error ? (
          <Failed error={list.error} onRetry={() => void list.refetch()} />
        ) : (
          <Waiting onRetry={() => void list.refetch()}>
            <SkeletonRows rows={12} />
          </Waiting>
        )
      ) : alerts.length === 0 ? (
        <NoAlerts isFiltered={Object.keys(filters).length > 0} />
      ) : (
        <AlertList
          alerts={alerts}
          checked={checked}
          onCheck={onCheck}
          onEnd={loadMore}
          onOpen={onOpen}
          openId={openId}
          tenant={tenant}
          total={total}
        />
      )}
    </>
  )
}

/** What is done with every alert that the filters match, loaded or not. */
function AllMenu({
  tenant,
  total,
  filters,
  onStarted,
}: {
  tenant: string
  total: number
  filters: Record<string, string>
  onStarted: (jobId: string) => void
}) {
  // A span begins at the moment when the dialog was opened, for the count and for the change.
  const [bulk, setBulk] = useState<{ sets: BulkSets; filter: Record<string, string> } | null>(null)
  const begin = (sets: BulkSets) => setBulk({ sets, filter: toQuery(filters, serverNowMs()) })
  const maySetDisposition = useMay('analyst')
  const download = (form: 'plain' | 'excel') => {
    const query = new URLSearchParams({ ...toQuery(filters, serverNowMs()), form })
    location.assign(`${prefix}/admin/v1/tenants/${tenant}/alerts.csv?${query}`)
  }
  return (
    <>
      <Menu
        trigger={
          <Button small>
            {`Actions on all ${total.toLocaleString('en')}`}
            <Icon name="down" size={12} />
          </Button>
        }
      >
        {maySetDisposition && (
          <>
            <MenuItem onSelect={() => begin('disposition')}>Set disposition</MenuItem>
            <MenuItem onSelect={() => begin('assignee')}>Assign them</MenuItem>
          </>
        )}
        <MenuItem onSelect={() => download('plain')}>Download as CSV</MenuItem>
        <MenuItem onSelect={() => download('excel')}>Download for Excel</MenuItem>
      </Menu>
      {bulk !== null && (
        <BulkDialog
          onClose={() => setBulk(null)}
          onStarted={(jobId) => {
            setBulk(null)
            onStarted(jobId)
          }}
          sets={bulk.sets}
          target={{ filter: bulk.filter }}
          tenant={tenant}
        />
      )}
    </>
  )
}

function NoAlerts({ isFiltered }: { isFiltered: boolean }) {
  const [, change] = useUrlSearch()
  if (!isFiltered) {
    return <Empty title="No alert yet">An event whose action is REVIEW or BLOCK raises one.</Empty>
  }
  return (
    <Empty title="No alert matches these filters">
      <Button onClick={() => change(replaceFilters({}))}>Clear the filters</Button>
    </Empty>
  )
}
