/** The filters above the list, each of them in the URL. */
import { flags } from '#shared/core/signals/flags.ts'
import { Button } from '../../../components/button.tsx'
import { useUrlSearch } from '../../../components/url-state.ts'
import { dispositions } from '../../alert/alert.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { AssigneeFilter } from './assignee-filter.tsx'
import { ChoiceFilter } from './choice-filter.tsx'
import { pickFilters, replaceFilters } from './filter-values.ts'
import { IdChips, IdFilterForm } from './id-filter.tsx'

const plain = (values: readonly string[]) => values.map((value) => [value, value] as const)
const dispositionValues = dispositions.map((one) => [one, dispositionText(one)] as const)
const decisionValues = plain(['REVIEW', 'BLOCK'])
const severityValues = plain(['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'])
const flagValues = plain(Object.keys(flags))

export function FilterBar() {
  const [search, change] = useUrlSearch()
  const isFiltered = Object.keys(pickFilters(search)).length > 0
  return (
    <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
      <ChoiceFilter label="Disposition" name="disposition" values={dispositionValues} />
      <ChoiceFilter label="Decision" name="decision" values={decisionValues} />
      <ChoiceFilter label="Severity" name="severity" values={severityValues} />
      <ChoiceFilter label="Flag" name="flag" values={flagValues} />
      <AssigneeFilter />
      <IdChips />
      <IdFilterForm />
      {isFiltered && (
        <Button look="quiet" onClick={() => change(replaceFilters({}))}>
          Clear
        </Button>
      )}
    </search>
  )
}
