/** Buttons: one primary action a page, plain ones beside it, and one that cannot be undone. */
import type { ButtonHTMLAttributes, Ref } from 'react'
import { classes } from './classes.ts'
import { Icon, type IconName } from './icons.tsx'

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: 'primary' | 'plain' | 'danger' | 'quiet'
  icon?: IconName
  /** Shows that the action is under way and refuses another click. */
  busy?: boolean
  small?: boolean
  ref?: Ref<HTMLButtonElement>
}

const looks = {
  primary: 'bg-accent text-on-accent hover:enabled:bg-accent-hover',
  danger: 'bg-bad-fill text-white hover:enabled:brightness-110',
  plain: 'border border-line-strong bg-raised text-text hover:enabled:bg-hover',
  quiet: 'text-muted hover:enabled:bg-hover hover:enabled:text-text',
}

export const buttonClasses = (look: keyof typeof looks = 'plain', small = false): string =>
  classes(
    'inline-flex items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap',
    'transition-colors motion-reduce:transition-none disabled:opacity-60',
    small ? 'h-7 px-2 text-sm' : 'h-8 px-3',
    looks[look],
  )

export function Button({ look, icon, busy, small, children, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-busy={busy || undefined}
      className={classes(buttonClasses(look, small), className)}
      disabled={rest.disabled || busy}
    >
      {busy ? <Spinner /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export function IconButton({
  label,
  icon,
  className,
  ...rest
}: Omit<ButtonProps, 'look' | 'busy' | 'small'> & { label: string; icon: IconName }) {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label}
      className={classes(
        'inline-flex size-7 shrink-0 items-center justify-center rounded-md text-muted',
        'hover:bg-hover hover:text-text disabled:opacity-60',
        className,
      )}
      title={label}
    >
      <Icon name={icon} />
    </button>
  )
}

export function Spinner() {
  return (
    <span
      aria-hidden="true"
      className="size-3.5 animate-spin rounded-full border-2 border-current border-t-transparent"
    />
  )
}
