/** The button of a filter, which opens its choice. */
import { Button } from '../button.tsx'
import { classes } from '../classes.ts'
import { Icon } from '../icons.tsx'

/** The button of a filter: its name, and what is chosen. */
export function FilterButton({
  label,
  text,
  ...rest
}: { label: string; text?: string } & Omit<Parameters<typeof Button>[0], 'children'>) {
  return (
    <Button {...rest} className={classes(text && 'border-accent!')}>
      <span className="font-normal text-muted">{label}</span>
      {text && <span className="max-w-40 truncate">{text}</span>}
      <Icon name="down" size={12} />
    </Button>
  )
}
