/** The filters above the list, each of them in the URL. */
import { lazy, Suspense } from 'react'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { Button } from '../../../components/button.tsx'
import { FilterButton } from '../../../components/find/filter-button.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { ChoiceFilter } from './choice-filter.tsx'
import { choiceFilters, pickFilters, replaceFilters, typedFilters } from './filter-values.ts'
import { FilterChips, TypedFilterForm } from './typed-filter.tsx'

const load = () => import('./find-filters.tsx')
const FlagFilter = lazy(() => load().then((file) => ({ default: file.FlagFilter })))
const SdkVersionFilter = lazy(() => load().then((file) => ({ default: file.SdkVersionFilter })))
const AssigneeFilter = lazy(() => load().then((file) => ({ default: file.AssigneeFilter })))

/** Filters whose values are found by typing. */
const findFilters = [
  { name: 'flag', text: 'Flag', Filter: FlagFilter },
  { name: 'sdk_version', text: 'SDK version', Filter: SdkVersionFilter },
  { name: 'assignee', text: 'Assignee', Filter: AssigneeFilter },
]

const textOf = (word: string): string =>
  dispositions.some((one) => one === word) ? dispositionText(word as Disposition) : word

export function FilterBar({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const isFiltered = Object.keys(pickFilters(search)).length > 0
  return (
    <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
      {choiceFilters.map(({ name, text, words }) => (
        <ChoiceFilter
          key={name}
          label={text}
          name={name}
          values={words.map((word) => [word, textOf(word)] as const)}
        />
      ))}
      {findFilters.map(({ name, text, Filter }) => (
        <Suspense fallback={<FilterButton label={text} text={search[name] ?? ''} />} key={name}>
          <Filter tenant={tenant} />
        </Suspense>
      ))}
      <FilterChips filters={typedFilters} />
      <TypedFilterForm filters={typedFilters} />
      {isFiltered && (
        <Button look="quiet" onClick={() => change(replaceFilters({}))}>
          Clear
        </Button>
      )}
    </search>
  )
}
