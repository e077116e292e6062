/** The filters above the list, each of them in the URL. */
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { Button } from '../../../components/button.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { AssigneeFilter } from './assignee-filter.tsx'
import { ChoiceFilter } from './choice-filter.tsx'
import { choiceFilters, pickFilters, replaceFilters, typedFilters } from './filter-values.ts'
import { FilterChips, TypedFilterForm } from './typed-filter.tsx'

const textOf = (word: string): string =>
  dispositions.some((one) => one === word) ? dispositionText(word as Disposition) : word

export function FilterBar() {
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
      <AssigneeFilter />
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
