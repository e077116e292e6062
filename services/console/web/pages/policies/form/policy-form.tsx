/**
 * The thresholds, rules, floors, caps, groups and weights of a draft as a form; every change goes
 * into its JSON.
 */
import { useQuery } from '@tanstack/react-query'
import { Badge } from '../../../components/badge.tsx'
import { classes } from '../../../components/classes.ts'
import { controlClasses } from '../../../components/field.tsx'
import { seenByServerText } from '../../../components/signal-name.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { Loaded } from '../../../components/states.tsx'
import { catalogQuery, type SignalCatalog } from '../../signals/catalog-query.ts'
import type { CategoryWeights, FormProps, Weight } from '../policy-document.ts'
import { CheckedInput, toPoints, useFocusWithin } from './checked-input.tsx'
import { FloorForm } from './floor-form.tsx'
import { GroupForm } from './group-form.tsx'
import { SuppressionList } from './suppressions.tsx'
import { useWanted, VelocityForm } from './velocity-form.tsx'

type Category = SignalCatalog['categories'][number]

export function PolicyForm(props: FormProps) {
  const { tenant, document, errorOf, onChange } = props
  const catalog = useQuery(catalogQuery(tenant))
  const { review, block } = document.thresholds
  // A link may lead to the weight of a signal, or to a rule.
  const wanted = useUrlSearch()[0].weight ?? ''
  const setThreshold = (name: 'review' | 'block', text: string) =>
    onChange({ ...document, thresholds: { ...document.thresholds, [name]: toPoints(text) } })
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 sm:grid-cols-3">
        <CheckedInput
          error={errorOf('$.name')}
          label="Name"
          onChange={({ target }) => onChange({ ...document, name: target.value })}
          value={document.name ?? ''}
        />
        <CheckedInput
          error={errorOf('$.thresholds.review') ?? errorOf('$.thresholds')}
          hint="REVIEW from this score."
          label="Review from"
          max={100}
          min={1}
          onChange={({ target }) => setThreshold('review', target.value)}
          type="number"
          value={review ?? ''}
        />
        <CheckedInput
          error={errorOf('$.thresholds.block')}
          hint="BLOCK from this score; 101 is never."
          label="Block from"
          max={101}
          min={1}
          onChange={({ target }) => setThreshold('block', target.value)}
          type="number"
          value={block ?? ''}
        />
      </div>
      <SuppressionList {...props} />
      <VelocityForm {...props} wanted={wanted} />
      <FloorForm {...props} />
      <h3 className="font-medium">Weights</h3>
      <Loaded query={catalog}>
        {({ categories }) => (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
            {categories.map((category) => (
              <CategoryForm
                key={category.category}
                {...props}
                category={category}
                wanted={wanted}
              />
            ))}
          </div>
        )}
      </Loaded>
    </div>
  )
}

/** A category of the server in a document without it. */
const unweighed: CategoryWeights = { cap: 0, signals: {} }

function CategoryForm({
  category: { category, seen_by: seenBy, signals },
  document,
  base,
  errorOf,
  onChange,
  wanted,
}: FormProps & { category: Category; wanted: string }) {
  const isServer = seenBy === 'server'
  const member = isServer ? 'serverCategories' : 'categories'
  // A document that does not weigh what the server sees may begin to.
  const own = document[member]?.[category] ?? (isServer ? unweighed : undefined)
  if (own === undefined) return null
  const before = base[member]?.[category]
  const change = (next: CategoryWeights) =>
    onChange({ ...document, [member]: { ...document[member], [category]: next } })
  const setWeight = (name: string, weight: Weight | null) => {
    const { [name]: _, ...others } = own.signals
    change({ ...own, signals: weight === null ? others : { ...own.signals, [name]: weight } })
  }
  const changed = JSON.stringify(own) !== JSON.stringify(before ?? (isServer ? unweighed : before))
  const weighing = Object.keys(own.signals).length
  return (
    <details
      className="rounded-md border border-line"
      open={changed || wanted.startsWith(`${category}.`)}
    >
      <summary className="flex min-h-10 flex-wrap items-center gap-x-3 px-3 py-1">
        <span className="font-medium">{category}</span>
        {isServer && <Badge tone="neutral">{seenByServerText}</Badge>}
        <span className="text-muted text-sm">
          {weighing} of {signals.length} signals weigh, cap {own.cap}
        </span>
        {changed && <Badge tone="accent">changed</Badge>}
      </summary>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-2 border-line border-t p-3">
        <div className="max-w-48">
          <CheckedInput
            error={errorOf(`$.${member}.${category}.cap`)}
            label={`Cap of ${category}`}
            max={100}
            min={0}
            onChange={({ target }) => change({ ...own, cap: toPoints(target.value) })}
            type="number"
            value={own.cap ?? ''}
          />
        </div>
        <GroupForm
          category={category}
          errorOf={errorOf}
          onChange={change}
          path={`$.${member}.${category}`}
          weights={own}
        />
        <ul className="grid grid-cols-[minmax(0,1fr)] gap-px">
          {signals.map((signal) => (
            <SignalRow
              isWanted={wanted === signal.signal}
              before={before?.signals?.[signal.name]}
              error={errorOf(`$.${member}.${category}.signals.${signal.name}`)}
              key={signal.name}
              onChange={(weight) => setWeight(signal.name, weight)}
              signal={signal}
              weight={own.signals[signal.name]}
            />
          ))}
        </ul>
      </div>
    </details>
  )
}

function SignalRow({
  signal,
  weight,
  before,
  error,
  isWanted,
  onChange,
}: {
  signal: Category['signals'][number]
  /** Whether a link led to it. */
  isWanted: boolean
  weight: Weight | undefined
  before: Weight | undefined
  error: string | undefined
  onChange: (weight: Weight | null) => void
}) {
  const changed = JSON.stringify(weight) !== JSON.stringify(before)
  const row = useWanted<HTMLLIElement>(isWanted)
  const { isWithin, ...focus } = useFocusWithin()
  return (
    <li
      {...focus}
      className={classes(
        'flex min-h-9 flex-wrap items-center gap-x-4 gap-y-1 py-0.5',
        isWanted && 'bg-accent-soft',
      )}
      ref={row}
    >
      <span className="min-w-40 flex-1" title={signal.description}>
        <span className="font-mono text-sm">{signal.name}</span>
        <span className="block truncate text-muted text-xs">{signal.description}</span>
      </span>
      {changed && (
        <span className="text-accent-text text-sm">
          was {before === undefined ? 'none' : toShort(before)}
        </span>
      )}
      <WeightInputs label={signal.signal} onChange={onChange} type={signal.type} weight={weight} />
      {error !== undefined && !isWithin && (
        <span className="w-full text-bad text-sm" role="alert">
          {error}
        </span>
      )}
    </li>
  )
}

function toShort(weight: Weight): string {
  if (typeof weight === 'number') return String(weight)
  if ('whenFalse' in weight) return `${weight.whenFalse} when false`
  if ('atLeast' in weight) return `${weight.weight} from ${weight.atLeast}`
  return Object.entries(weight.values)
    .map(([value, points]) => `${value} ${points}`)
    .join(', ')
}

/** One number for a boolean, two for a number, and one for each value of a text or list. */
function WeightInputs({
  label,
  weight,
  type,
  onChange,
}: {
  label: string
  weight: Weight | undefined
  type: string
  onChange: (weight: Weight | null) => void
}) {
  if (weight === undefined || typeof weight === 'number') {
    if (weight === undefined && type !== 'boolean') {
      return <span className="text-muted text-sm">none; give it a weight in the JSON</span>
    }
    return (
      <Points
        label={`Points of ${label}`}
        onChange={(points) => onChange(points === null ? null : points)}
        value={weight}
      />
    )
  }
  if ('whenFalse' in weight) {
    return (
      <span className="flex items-center gap-2 text-muted text-sm">
        when false
        <Points
          label={`Points of ${label} when false`}
          onChange={(points) => onChange(points === null ? null : { whenFalse: points })}
          value={weight.whenFalse}
        />
      </span>
    )
  }
  if ('atLeast' in weight) {
    return (
      <span className="flex items-center gap-2 text-muted text-sm">
        from
        <Points
          label={`Smallest number of ${label}`}
          max={1_000_000}
          onChange={(atLeast) => onChange({ ...weight, atLeast: atLeast ?? 0 })}
          value={weight.atLeast}
        />
        <Points
          label={`Points of ${label}`}
          onChange={(points) => onChange(points === null ? null : { ...weight, weight: points })}
          value={weight.weight}
        />
      </span>
    )
  }
  return (
    <span className="flex flex-wrap items-center justify-end gap-2 text-muted text-sm">
      {Object.entries(weight.values).map(([value, points]) => (
        <span className="flex items-center gap-1.5" key={value}>
          {value}
          <Points
            label={`Points of ${label} when ${value}`}
            onChange={(next) =>
              onChange({ ...weight, values: { ...weight.values, [value]: next ?? 0 } })
            }
            value={points}
          />
        </span>
      ))}
    </span>
  )
}

function Points({
  label,
  value,
  max = 100,
  onChange,
}: {
  label: string
  value: number | undefined
  max?: number
  onChange: (value: number | null) => void
}) {
  return (
    <input
      aria-label={label}
      className={classes(controlClasses, 'h-7 w-20! text-right')}
      max={max}
      min={0}
      onChange={({ target }) => onChange(target.value === '' ? null : Number(target.value))}
      placeholder="0"
      type="number"
      value={value ?? ''}
    />
  )
}
