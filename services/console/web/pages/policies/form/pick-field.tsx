/** A field of several values that are chosen from a list: a button that opens it, and the values. */
import { type ReactNode, useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { Field } from '../../../components/field.tsx'
import type { FindChoice } from '../../../components/find/find-choices.ts'
import { FindList, FindMenu } from '../../../components/find/find-menu.tsx'
import { Icon } from '../../../components/icons.tsx'
import { useFocusWithin } from './checked-input.tsx'

/** Values that are shown at first: a flag may have thirty signals. */
const shownMost = 5

/**
 * @param none what it means that nothing is chosen
 * @param error shown once the field was left
 * @param onToggle switches a choice of the list on or off
 */
export function PickField({
  label,
  none,
  values,
  choices,
  unit,
  toTyped,
  note,
  error,
  wasLeft,
  onToggle,
}: {
  label: string
  none: string
  values: readonly string[]
  choices: readonly FindChoice[]
  unit?: string
  toTyped?: (text: string) => FindChoice | null
  note?: ReactNode
  error: string | undefined
  /** Whether the part of the form that it is in was left before. */
  wasLeft: boolean
  onToggle: (value: string) => void
}) {
  const { isWithin, hasLeft, ...focus } = useFocusWithin()
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-1.5" {...focus}>
      <Field error={isWithin || !(hasLeft || wasLeft) ? undefined : error} label={label}>
        {({ id, 'aria-describedby': describedBy }) => (
          <FindMenu
            label={label}
            trigger={
              <Button
                aria-describedby={[describedBy, `${id}-values`].filter(Boolean).join(' ')}
                className="w-full justify-between! font-normal!"
                id={id}
              >
                {values.length === 0 ? <span className="text-muted">{none}</span> : 'Change'}
                <Icon name="down" size={12} />
              </Button>
            }
          >
            {() => (
              <FindList
                choices={choices}
                chosen={values}
                label={label}
                many
                note={note}
                onChoose={onToggle}
                {...(toTyped && { toTyped })}
                {...(unit && { unit })}
              />
            )}
          </FindMenu>
        )}
      </Field>
      <Values label={label} onRemove={onToggle} values={values} />
    </div>
  )
}

function Values({
  label,
  values,
  onRemove,
}: {
  label: string
  values: readonly string[]
  onRemove: (value: string) => void
}) {
  const [shown, setShown] = useState(shownMost)
  if (values.length === 0) return null
  const rest = values.length - shown
  return (
    <ul aria-label={`${label} chosen`} className="flex flex-wrap gap-1">
      {values.slice(0, shown).map((value) => (
        <li
          className="inline-flex min-h-7 max-w-full items-center rounded border border-line-strong pl-2"
          key={value}
        >
          <code className="min-w-0 font-mono text-sm wrap-anywhere">{value}</code>
          <IconButton icon="close" label={`Remove ${value}`} onClick={() => onRemove(value)} />
        </li>
      ))}
      {rest > 0 && (
        <li>
          <Button look="quiet" onClick={() => setShown(values.length)} small>
            {rest} more
          </Button>
        </li>
      )}
    </ul>
  )
}
