/** Groups of a category: signals of one fact, which together bring at most so many points. */
import { Button } from '../../../components/button.tsx'
import type { CategoryWeights, SignalGroup } from '../policy-document.ts'
import { CheckedInput, toListError, toNames, toPoints } from './checked-input.tsx'

export function GroupForm({
  category,
  path,
  weights,
  errorOf,
  onChange,
}: {
  category: string
  /** The path of the category in the document. */
  path: string
  weights: CategoryWeights
  errorOf: (path: string) => string | undefined
  onChange: (weights: CategoryWeights) => void
}) {
  const groups = Array.isArray(weights.groups) ? weights.groups : []
  const change = (next: SignalGroup[]) => {
    const { groups: _, ...others } = weights
    onChange(next.length === 0 ? others : { ...others, groups: next })
  }
  const setGroup = (at: number, group: SignalGroup) =>
    change(groups.map((one, index) => (index === at ? group : one)))
  return (
    <section aria-label={`Groups of ${category}`} className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <div className="flex items-center justify-between gap-2">
        <h4 className="font-medium text-sm">Groups</h4>
        <Button
          aria-label={`Add a group to ${category}`}
          icon="plus"
          onClick={() => change([...groups, { cap: 20, signals: [] }])}
          small
        >
          Add a group
        </Button>
      </div>
      {groups.map((group, at) => (
        <div
          className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 sm:grid-cols-[minmax(0,3fr)_minmax(0,1fr)_auto]"
          key={at}
        >
          <CheckedInput
            error={toListError(errorOf, `${path}.groups[${at}].signals`, group.signals.length)}
            hint="Two or more names of this category, with commas between them."
            label={`Signals of group ${at + 1} of ${category}`}
            mono
            onChange={({ target }) => setGroup(at, { ...group, signals: toNames(target.value) })}
            value={group.signals.join(', ')}
          />
          <CheckedInput
            error={errorOf(`${path}.groups[${at}].cap`)}
            label="At most, together"
            max={100}
            min={0}
            onChange={({ target }) => setGroup(at, { ...group, cap: toPoints(target.value) })}
            type="number"
            value={group.cap ?? ''}
          />
          <Button
            aria-label={`Remove group ${at + 1} of ${category}`}
            className="sm:mt-6"
            onClick={() => change(groups.filter((_, index) => index !== at))}
          >
            Remove
          </Button>
        </div>
      ))}
    </section>
  )
}
