/** Floors: signals that are proof by themselves, and lift the score to a value. */
import { Button } from '../../../components/button.tsx'
import { Select } from '../../../components/field.tsx'
import type { FormProps, PolicyDocument } from '../policy-document.ts'
import { CheckedInput, toListError, toNames, toPoints } from './checked-input.tsx'

type Floor = NonNullable<PolicyDocument['floors']>[number]

export function FloorForm({ document, errorOf, onChange }: FormProps) {
  const floors = Array.isArray(document.floors) ? document.floors : []
  const change = (next: Floor[]) => onChange({ ...document, floors: next })
  const setFloor = (at: number, floor: Floor) =>
    change(floors.map((one, index) => (index === at ? floor : one)))
  return (
    <section aria-label="Floors" className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <div className="flex items-center justify-between gap-2">
        <h3 className="font-medium">Floors</h3>
        <Button
          icon="plus"
          onClick={() => change([...floors, { score: document.thresholds.block, signals: [] }])}
          small
        >
          Add a floor
        </Button>
      </div>
      {floors.length === 0 && (
        <p className="text-muted text-sm">
          None. One lifts the score to a value on a signal alone.
        </p>
      )}
      {floors.map((floor, at) => (
        <div
          className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 rounded-md border border-line p-3 sm:grid-cols-2 lg:grid-cols-[minmax(0,3fr)_minmax(0,1fr)_minmax(0,1fr)_auto]"
          key={at}
        >
          <CheckedInput
            error={toListError(errorOf, `$.floors[${at}].signals`, floor.signals?.length ?? 0)}
            hint="Each as category.signal, with commas between them."
            label={`Signals of floor ${at + 1}`}
            mono
            onChange={({ target }) => setFloor(at, { ...floor, signals: toNames(target.value) })}
            value={(floor.signals ?? []).join(', ')}
          />
          <CheckedInput
            error={errorOf(`$.floors[${at}].score`)}
            label="Lifts the score to"
            max={100}
            min={0}
            onChange={({ target }) => setFloor(at, { ...floor, score: toPoints(target.value) })}
            type="number"
            value={floor.score ?? ''}
          />
          <Select
            label="When"
            onChange={({ target }) => {
              const { need: _, ...others } = floor
              setFloor(at, target.value === 'all' ? { ...others, need: 'all' } : others)
            }}
            value={floor.need ?? 'any'}
          >
            <option value="any">any of them scores</option>
            <option value="all">all of them score</option>
          </Select>
          <Button
            aria-label={`Remove floor ${at + 1}`}
            className="lg:mt-6"
            onClick={() => change(floors.filter((_, index) => index !== at))}
          >
            Remove
          </Button>
        </div>
      ))}
    </section>
  )
}
