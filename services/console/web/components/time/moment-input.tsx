/**
 * A field for a day or a moment. A browser hands over every step of typing: a year has been 0002,
 * 0020 and 0202 before it is 2026. So the field keeps what is typed, hands over what is complete
 * and plausible, and says what is wrong with anything else once it is left.
 */
import { useEffect, useState } from 'react'
import { controlClasses, Field } from '../field.tsx'

const yearMin = 2000
const yearMax = 2199

/** What is wrong with a `date` or `datetime-local` field, or null. */
function findFault({ value: text, validity, required }: HTMLInputElement): string | null {
  if (validity.badInput) return `Type the whole date${required ? '.' : ', or clear it.'}`
  if (text === '') return required ? 'Type the whole date.' : null
  const year = Number(text.split('-', 1)[0])
  const isPlausible = year >= yearMin && year <= yearMax
  return isPlausible ? null : `The year must be from ${yearMin} to ${yearMax}.`
}

type MomentInputProps = {
  label: string
  hint?: string
  /** What the server, or the field beside it, has against the value. */
  error?: string | undefined
  /** `2026-11-25` for a day, `2026-11-25T14:03` for a moment; empty for none. */
  value: string
  kind?: 'date' | 'datetime-local'
  required?: boolean
  /** Gets a complete and plausible text, or an empty one where that is allowed. */
  onChange: (value: string) => void
  /** One line of a toolbar instead of a field of a form. */
  inLine?: boolean
}

export function MomentInput(props: MomentInputProps) {
  const { label, hint, error, value, kind = 'datetime-local', required = false } = props
  const [draft, setDraft] = useState(value)
  const [fault, setFault] = useState<string | null>(null)
  // Something else has changed it: another choice, or Back.
  useEffect(() => {
    setDraft(value)
    setFault(null)
  }, [value])
  return (
    <Field error={fault ?? error} hint={hint} inLine={props.inLine} label={label}>
      {(control) => (
        <input
          {...control}
          className={`${controlClasses} h-8 ${props.inLine ? 'w-auto!' : ''}`}
          max={kind === 'date' ? `${yearMax}-12-31` : `${yearMax}-12-31T23:59`}
          onBlur={({ target }) => setFault(findFault(target))}
          onChange={({ target }) => {
            setDraft(target.value)
            if (findFault(target) !== null) return
            setFault(null)
            props.onChange(target.value)
          }}
          required={required}
          type={kind}
          value={draft}
        />
      )}
    </Field>
  )
}
