/** The left pane: how many cases there are, the next one, and the list. */
import { Button, IconButton } from '../../components/button.tsx'
import { controlClasses } from '../../components/field.tsx'
import { LiveSwitch } from '../../components/live-switch.tsx'
import { useUrlSearch, useUrlState } from '../../components/state/url-state.ts'
import { Empty, Failed, SkeletonRows, Waiting } from '../../components/states.tsx'
import { counted } from '../../components/words.ts'
import type { Case } from '../case/case.ts'
import { CaseList } from './case-list.tsx'
import {
  countNames,
  isNarrowed,
  replaceFilters,
  sorts,
  usualSort,
} from './filters/filter-values.ts'
import { useCaseCounts, type useCaseList } from './use-case-list.ts'
import type { useLiveCases } from './use-live-cases.ts'

export function QueuePane({
  tenant,
  list,
  live,
  cases,
  openId,
  filters,
  onOpen,
}: {
  tenant: string
  list: ReturnType<typeof useCaseList>
  live: ReturnType<typeof useLiveCases>
  cases: readonly Case[]
  openId: string
  filters: Record<string, string>
  onOpen: (caseId: string) => void
}) {
  const total = useTotal(tenant, filters)
  const [sort, setSort] = useUrlState('sort', usualSort)
  const readAgain = () => {
    live.see()
    void list.refetch()
  }
  const loadMore = () => {
    if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage()
  }
  return (
    <>
      <div className="flex h-10 shrink-0 items-center gap-2 border-line border-b pr-2 pl-4">
        <span className="whitespace-nowrap text-muted" role="status">
          {total !== undefined && counted(total, 'case')}
        </span>
        {live.fresh > 0 && (
          <Button look="primary" onClick={readAgain} small>
            {live.fresh.toLocaleString('en')} new
          </Button>
        )}
        <select
          aria-label="Order"
          className={`${controlClasses} ml-auto h-8 w-auto!`}
          onChange={({ target }) => setSort(target.value)}
          value={sort}
        >
          {sorts.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <LiveSwitch connected={live.connected} />
        <IconButton disabled={list.isFetching} icon="refresh" label="Refresh" onClick={readAgain} />
      </div>
      {list.data === undefined ? (
        list.error ? (
          <Failed error={list.error} onRetry={() => void list.refetch()} />
        ) : (
          <Waiting onRetry={() => void list.refetch()}>
            <SkeletonRows rows={12} />
          </Waiting>
        )
      ) : cases.length === 0 ? (
        <NoCases isFiltered={isNarrowed(filters)} />
      ) : (
        <CaseList cases={cases} onEnd={loadMore} onOpen={onOpen} openId={openId} total={total} />
      )}
    </>
  )
}

/** How many cases the list has, of the counts of its states. */
function useTotal(tenant: string, filters: Record<string, string>): number | undefined {
  const { data: counts } = useCaseCounts(tenant, filters)
  if (counts === undefined) return undefined
  return countNames(filters).reduce((sum, name) => sum + counts[name], 0)
}

function NoCases({ isFiltered }: { isFiltered: boolean }) {
  const [, change] = useUrlSearch()
  if (!isFiltered) {
    return (
      <Empty title="No case is open">
        <p>An alert of a phone, a device or a user without an open case begins one.</p>
      </Empty>
    )
  }
  return (
    <Empty title="No case matches these filters">
      <Button onClick={() => change(replaceFilters({}))}>Clear the filters</Button>
    </Empty>
  )
}
