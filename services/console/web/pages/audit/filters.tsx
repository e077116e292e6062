/** The filters of the audit log, each of them in the URL: who, what and when. */
import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { auditedActions } from '#shared/core/audit/audited-actions.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { controlClasses } from '../../components/field.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { useTimeRange } from '../../components/time/time-range.tsx'
import { ChoiceFilter } from '../alerts/filters/choice-filter.tsx'
import { operatorsQuery } from '../operators/operators.ts'

/** As the API takes them. */
export type Filters = { actor?: string; action?: string; from?: string; to?: string }

const actionValues = auditedActions.map((action) => [action, action] as const)
/** Actors that are no operators. */
const otherActors = ['admin', 'system', 'unknown']

export function useFilters(): Filters {
  const [{ actor, action }] = useUrlSearch()
  const { span, from, to } = useTimeRange('any')
  return {
    ...(actor ? { actor } : {}),
    ...(action ? { action } : {}),
    ...(span === 'any' ? {} : { from }),
    ...(to === null ? {} : { to }),
  }
}

/** Whether the log is narrowed, and what takes all filters away. */
export function useClear(): [boolean, () => void] {
  const [, change] = useUrlSearch()
  const isFiltered = Object.keys(useFilters()).length > 0
  return [isFiltered, () => change({ actor: '', action: '', span: '', from: '', to: '', row: '' })]
}

export function FilterBar({ seesAll }: { seesAll: boolean }) {
  const [isFiltered, clear] = useClear()
  return (
    <search aria-label="Filters" className="flex flex-wrap items-center gap-2">
      <ActorFilter seesAll={seesAll} />
      <ChoiceFilter label="What" name="action" values={actionValues} />
      {isFiltered && (
        <Button look="quiet" onClick={clear}>
          Clear
        </Button>
      )}
    </search>
  )
}

/** One actor: typed or chosen; in force on Enter, or when the field is left. */
function ActorFilter({ seesAll }: { seesAll: boolean }) {
  const [{ actor = '' }, change] = useUrlSearch()
  const { data } = useQuery({ ...operatorsQuery, enabled: seesAll })
  const list = useId()
  const known = [...(data?.data.map(({ email }) => email) ?? []), ...otherActors]
  const set = (text: string) => {
    if (text.trim() !== actor) change({ actor: text.trim(), row: '' })
  }
  return (
    <form
      className="flex min-w-0 flex-1 basis-64 items-center gap-1 sm:max-w-80"
      onSubmit={(event) => {
        event.preventDefault()
        set(String(new FormData(event.currentTarget).get('actor') ?? ''))
      }}
    >
      <input
        aria-label="Who"
        className={`${controlClasses} h-8 min-w-0`}
        defaultValue={actor}
        key={actor}
        list={list}
        name="actor"
        onBlur={({ target }) => set(target.value)}
        onChange={({ target }) => known.includes(target.value) && set(target.value)}
        placeholder="Who: an email, or admin"
        spellCheck={false}
      />
      <datalist id={list}>
        {known.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {actor !== '' && (
        <IconButton icon="close" label="Anyone" onClick={() => change({ actor: '', row: '' })} />
      )}
    </form>
  )
}
