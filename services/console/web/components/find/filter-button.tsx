/** The button of a filter, which opens its choice. */
import { Button } from '../button.tsx'
import { classes } from '../classes.ts'
import { Icon } from '../icons.tsx'

/**
 * The button of a filter: its name, and what is chosen.
 * @param waits its choice is not loaded yet: a click would be lost
 */
export function FilterButton({
  label,
  text,
  waits = false,
  ...rest
}: { label: string; text?: string; waits?: boolean } & Omit<
  Parameters<typeof Button>[0],
  'children'
>) {
  return (
    <Button
      {...rest}
      className={classes(text && 'border-accent!', waits && 'opacity-100!')}
      disabled={waits}
    >
      <span className="font-normal text-muted">{label}</span>
      {text && <span className="max-w-40 truncate">{text}</span>}
      <Icon name="down" size={12} />
    </Button>
  )
}
