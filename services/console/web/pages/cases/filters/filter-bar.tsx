/** The filters above the queue, each of them in the URL. */
import { lazy, Suspense } from 'react'
import { Button } from '../../../components/button.tsx'
import { classes } from '../../../components/classes.ts'
import { FilterButton } from '../../../components/find/filter-button.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { ChoiceFilter } from '../../alerts/filters/choice-filter.tsx'
import { FilterChips, TypedFilterForm } from '../../alerts/filters/typed-filter.tsx'
import { useCaseCounts } from '../use-case-list.ts'
import {
  choiceFilters,
  isNarrowed,
  linkedFilters,
  pickFilters,
  replaceFilters,
  states,
  typedFilters,
  usualState,
} from './filter-values.ts'

const AssigneeFilter = lazy(() =>
  import('../../alerts/filters/find-filters.tsx').then((file) => ({
    default: file.AssigneeFilter,
  })),
)

export function FilterBar({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const filters = pickFilters(search)
  return (
    <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
      <States filters={filters} tenant={tenant} />
      <Suspense fallback={<FilterButton label="Assignee" text={filters.assignee ?? ''} waits />}>
        <AssigneeFilter me="me" tenant={tenant} />
      </Suspense>
      {choiceFilters.map(({ name, text, values }) => (
        <ChoiceFilter key={name} label={text} name={name} values={values} />
      ))}
      <FilterChips filters={[...typedFilters, ...linkedFilters]} />
      <TypedFilterForm filters={typedFilters} />
      {isNarrowed(filters) && (
        <Button look="quiet" onClick={() => change(replaceFilters({}))}>
          Clear
        </Button>
      )}
    </search>
  )
}

/** Open, snoozed, closed and overdue, each with how many there are. */
function States({ tenant, filters }: { tenant: string; filters: Record<string, string> }) {
  const [, change] = useUrlSearch()
  const { data: counts } = useCaseCounts(tenant, filters)
  const isOverdue = filters.breached === 'true'
  const state = filters.state ?? usualState
  const all = [
    ...states.map(({ value, text, count }) => ({
      text,
      count: counts?.[count],
      isChosen: !isOverdue && state === value,
      choose: () => change({ state: value === usualState ? '' : value, breached: '', case: '' }),
    })),
    {
      text: 'Overdue',
      count: counts?.breached,
      isChosen: isOverdue,
      choose: () => change({ state: '', breached: 'true', case: '' }),
    },
  ]
  return (
    <fieldset className="flex min-w-0 flex-wrap overflow-hidden rounded-md border border-line-strong">
      <legend className="sr-only">State</legend>
      {all.map(({ text, count, isChosen, choose }) => (
        <button
          aria-pressed={isChosen}
          className={classes(
            'inline-flex h-7.5 items-center gap-1.5 border-line border-l px-2.5 font-medium outline-offset-[-2px] first:border-l-0',
            isChosen ? 'bg-accent-soft text-accent-text' : 'bg-raised hover:bg-hover',
          )}
          key={text}
          onClick={choose}
          type="button"
        >
          {text}
          <span
            className={classes(
              'font-normal text-sm',
              text === 'Overdue' && count ? 'text-bad' : isChosen ? '' : 'text-muted',
            )}
          >
            {count?.toLocaleString('en') ?? '…'}
          </span>
        </button>
      ))}
    </fieldset>
  )
}
