/** Form controls with their label, hint and the server's error beside them. */
import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'
import { classes } from './classes.ts'

export const controlClasses =
  'w-full rounded-md border border-line-strong bg-raised px-2.5 text-text placeholder:text-muted ' +
  'aria-invalid:border-bad disabled:opacity-60'

type FieldProps = {
  label: string
  hint?: ReactNode
  error?: string | undefined
  /** A line of a toolbar, instead of a field of a form. */
  inLine?: boolean | undefined
}

/** Lays out a label, a control and what is said about it; `children` gets the ids to use. */
export function Field({
  label,
  hint,
  error,
  inLine = false,
  children,
}: FieldProps & {
  children: (control: {
    id: string
    'aria-invalid': boolean
    'aria-describedby': string | undefined
  }) => ReactNode
}) {
  const id = useId()
  const text = error ?? hint
  return (
    <div
      className={inLine ? 'flex flex-wrap items-center gap-1 text-sm' : 'grid content-start gap-1'}
    >
      <label className={inLine ? 'text-muted' : 'wrap-anywhere font-medium'} htmlFor={id}>
        {label}
      </label>
      {children({
        id,
        'aria-invalid': error !== undefined,
        'aria-describedby': text ? `${id}-text` : undefined,
      })}
      {text && (
        <p
          className={classes('text-sm', error === undefined ? 'text-muted' : 'text-bad')}
          id={`${id}-text`}
          role={error === undefined ? undefined : 'alert'}
        >
          {text}
        </p>
      )}
    </div>
  )
}

type InputProps = InputHTMLAttributes<HTMLInputElement> &
  FieldProps & { mono?: boolean; ref?: Ref<HTMLInputElement> }

export function Input({ label, hint, error, mono, className, ...rest }: InputProps) {
  return (
    <Field error={error} hint={hint} label={label}>
      {(control) => (
        <input
          {...rest}
          {...control}
          className={classes(controlClasses, 'h-8', mono && 'font-mono', className)}
        />
      )}
    </Field>
  )
}

export function Textarea({
  label,
  hint,
  error,
  className,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & FieldProps) {
  return (
    <Field error={error} hint={hint} label={label}>
      {(control) => (
        <textarea {...rest} {...control} className={classes(controlClasses, 'py-1.5', className)} />
      )}
    </Field>
  )
}

export function Select({
  label,
  hint,
  error,
  className,
  children,
  ...rest
}: SelectHTMLAttributes<HTMLSelectElement> & FieldProps) {
  return (
    <Field error={error} hint={hint} label={label}>
      {(control) => (
        <select {...rest} {...control} className={classes(controlClasses, 'h-8', className)}>
          {children}
        </select>
      )}
    </Field>
  )
}

/** A box with its words to the right of it, and a line of explanation below. */
export function Checkbox({
  label,
  hint,
  ...rest
}: Omit<InputHTMLAttributes<HTMLInputElement>, 'type'> & { label: ReactNode; hint?: ReactNode }) {
  const id = useId()
  return (
    <div className="flex gap-2">
      <input
        {...rest}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="mt-0.5 size-4 shrink-0 accent-accent"
        id={id}
        type="checkbox"
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p className="text-muted text-sm" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
