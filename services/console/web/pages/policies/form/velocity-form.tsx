/** The rules on counts over time: what is counted, in which window, and the points above a count. */
import { useEffect, useRef } from 'react'
import type { VelocityMetric } from '#shared/core/policies/velocity-metrics.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { classes } from '../../../components/classes.ts'
import { Select } from '../../../components/field.tsx'
import type { FormProps, VelocityRule } from '../policy-document.ts'
import { CheckedInput, toPoints } from './checked-input.tsx'

const metricNames: Record<VelocityMetric, string> = {
  sessions_per_device: 'Sessions of a device',
  users_per_device: 'Users of a device',
  platforms_per_device: 'Platforms of a device',
  signal_flips: 'Changes of one signal of a device',
  devices_per_user: 'Devices of a user',
  devices_per_session: 'Devices of a session',
  new_device_of_user: 'Earlier devices of a user who is new on this one',
  countries_per_user: 'Countries of a user',
  countries_per_device: 'Countries of a device',
  networks_per_device: 'Networks of a device',
  devices_per_network: 'Devices of a network',
  users_per_network: 'Users of a network',
  impossible_travel: 'User elsewhere sooner than anybody travels',
  installs_per_phone: 'Installs of a phone',
  users_per_phone: 'Users of a phone',
}
const metrics = Object.keys(metricNames) as VelocityMetric[]

const units = [
  ['days', 86_400],
  ['hours', 3_600],
  ['minutes', 60],
  ['seconds', 1],
] as const
type Unit = (typeof units)[number][0]

/** A window in its largest whole unit. */
function toWindow(seconds: number): { count: number; unit: Unit } {
  const [unit, size] = units.find(([, one]) => seconds > 0 && seconds % one === 0) ?? ['seconds', 1]
  return { count: seconds / size, unit }
}

const toSeconds = (count: number, unit: Unit): number =>
  count * units.find(([name]) => name === unit)![1]

/** What a link to a rule carries in `weight`. */
const toRuleLink = (metric: string): string => `velocity.${metric}`

export function VelocityForm({
  document,
  errorOf,
  onChange,
  wanted,
}: FormProps & { wanted: string }) {
  const rules = Array.isArray(document.velocity) ? document.velocity : []
  const wantedAt = rules.findIndex(({ metric }) => wanted === toRuleLink(metric))
  const change = (velocity: VelocityRule[]) => onChange({ ...document, velocity })
  const add = () =>
    change([
      ...rules,
      { metric: 'devices_per_user', windowSeconds: 86_400, threshold: 3, weight: 20 },
    ])
  return (
    <section aria-label="Velocity rules" className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <div className="flex items-center justify-between gap-2">
        <h3 className="font-medium">Velocity rules</h3>
        <Button icon="plus" onClick={add} small>
          Add a rule
        </Button>
      </div>
      {rules.length === 0 && (
        <p className="text-muted text-sm">
          None. One adds points when something happens too often.
        </p>
      )}
      {rules.map((rule, at) => (
        <RuleRow
          errorOf={(field) => errorOf(`$.velocity[${at}]${field}`)}
          isWanted={at === wantedAt}
          key={at}
          number={at + 1}
          onChange={(next) => change(rules.map((one, index) => (index === at ? next : one)))}
          onRemove={() => change(rules.filter((_, index) => index !== at))}
          rule={rule}
        />
      ))}
    </section>
  )
}

function RuleRow({
  rule,
  number,
  isWanted,
  errorOf,
  onChange,
  onRemove,
}: {
  rule: VelocityRule
  number: number
  isWanted: boolean
  errorOf: (field: string) => string | undefined
  onChange: (rule: VelocityRule) => void
  onRemove: () => void
}) {
  const row = useWanted<HTMLDivElement>(isWanted)
  const { count, unit } = toWindow(rule.windowSeconds)
  return (
    <div
      className={classes(
        'grid grid-cols-[minmax(0,1fr)] gap-3 rounded-md border border-line p-3',
        isWanted && 'bg-accent-soft',
      )}
      ref={row}
    >
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 sm:grid-cols-2 lg:grid-cols-[minmax(0,2fr)_repeat(4,minmax(0,1fr))]">
        <Select
          error={errorOf('.metric')}
          label={`What rule ${number} counts`}
          onChange={({ target }) => onChange({ ...rule, metric: target.value })}
          value={rule.metric}
        >
          {metrics.map((metric) => (
            <option key={metric} value={metric}>
              {metricNames[metric]}
            </option>
          ))}
        </Select>
        <CheckedInput
          error={errorOf('.windowSeconds')}
          label="Within"
          min={1}
          onChange={({ target }) =>
            onChange({ ...rule, windowSeconds: toSeconds(Number(target.value), unit) })
          }
          type="number"
          value={count}
        />
        <Select
          label="Unit"
          onChange={({ target }) =>
            onChange({ ...rule, windowSeconds: toSeconds(count, target.value as Unit) })
          }
          value={unit}
        >
          {units.map(([name]) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <CheckedInput
          error={errorOf('.threshold')}
          hint="Acts on a count above it."
          label="Above"
          min={0}
          onChange={({ target }) => onChange({ ...rule, threshold: toPoints(target.value) })}
          type="number"
          value={rule.threshold ?? ''}
        />
        <CheckedInput
          data-weight
          error={errorOf('.weight')}
          hint="0 switches it off."
          label="Points"
          max={100}
          min={0}
          onChange={({ target }) => onChange({ ...rule, weight: toPoints(target.value) })}
          type="number"
          value={rule.weight ?? ''}
        />
      </div>
      <Steps errorOf={errorOf} number={number} onChange={onChange} rule={rule} />
      <div className="flex justify-end">
        <Button aria-label={`Remove rule ${number}`} onClick={onRemove} small>
          Remove
        </Button>
      </div>
    </div>
  )
}

/** Points that grow with the count. */
function Steps({
  rule,
  number,
  errorOf,
  onChange,
}: {
  rule: VelocityRule
  number: number
  errorOf: (field: string) => string | undefined
  onChange: (rule: VelocityRule) => void
}) {
  const steps = rule.steps ?? []
  const change = (next: typeof steps) => {
    const { steps: _, ...others } = rule
    // The document has no empty list.
    onChange(next.length === 0 ? others : { ...others, steps: next })
  }
  const last = steps.at(-1) ?? { above: rule.threshold, weight: rule.weight }
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      {steps.map((step, at) => (
        <div className="flex flex-wrap items-start gap-3" key={at}>
          <div className="w-32">
            <CheckedInput
              error={errorOf(`.steps[${at}].above`)}
              label={`Step ${at + 1} above`}
              min={1}
              onChange={({ target }) =>
                change(
                  steps.map((one, index) =>
                    index === at ? { ...one, above: toPoints(target.value) } : one,
                  ),
                )
              }
              type="number"
              value={step.above ?? ''}
            />
          </div>
          <div className="w-32">
            <CheckedInput
              error={errorOf(`.steps[${at}].weight`) ?? errorOf(`.steps[${at}]`)}
              label={`Points of step ${at + 1}`}
              max={100}
              min={0}
              onChange={({ target }) =>
                change(
                  steps.map((one, index) =>
                    index === at ? { ...one, weight: toPoints(target.value) } : one,
                  ),
                )
              }
              type="number"
              value={step.weight ?? ''}
            />
          </div>
          <IconButton
            icon="close"
            label={`Remove step ${at + 1} of rule ${number}`}
            onClick={() => change(steps.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <div>
        <Button
          aria-label={`More points for more, rule ${number}`}
          icon="plus"
          onClick={() =>
            change([...steps, { above: last.above + 5, weight: Math.min(100, last.weight + 10) }])
          }
          small
        >
          More points for more
        </Button>
      </div>
    </div>
  )
}

/** Brings what a link led to into view, with the focus on its points. */
export function useWanted<Element extends HTMLElement>(isWanted: boolean) {
  const row = useRef<Element>(null)
  useEffect(() => {
    if (!isWanted || row.current === null) return
    row.current.scrollIntoView({ block: 'center' })
    const find = (selector: string) => row.current?.querySelector<HTMLElement>(selector)
    const points = find('[data-weight]') ?? find('input')
    points?.focus()
  }, [isWanted])
  return row
}
