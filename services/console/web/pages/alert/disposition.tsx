/** What an operator thinks of an alert: a badge, and the control that sets it. */
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { classes } from '../../components/classes.ts'

const looks: Record<Disposition, { text: string; tone: Tone; key: string }> = {
  OPEN: { text: 'Open', tone: 'accent', key: 'o' },
  REVIEWED: { text: 'Reviewed', tone: 'neutral', key: 'r' },
  FALSE_POSITIVE: { text: 'False positive', tone: 'good', key: 'f' },
  CONFIRMED: { text: 'Confirmed', tone: 'bad', key: 'c' },
}

export const dispositionText = (disposition: Disposition): string => looks[disposition].text

export function DispositionBadge({ disposition }: { disposition: Disposition }) {
  const { text, tone } = looks[disposition]
  return <Badge tone={tone}>{text}</Badge>
}

/** Four buttons of which one is pressed, each with its key. */
export function DispositionButtons({
  value,
  onChoose,
}: {
  value: Disposition
  onChoose: (disposition: Disposition) => void
}) {
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Disposition</legend>
      {dispositions.map((one) => (
        <button
          aria-keyshortcuts={looks[one].key}
          aria-pressed={value === one}
          className={classes(
            'inline-flex h-8 items-center gap-2 rounded-md border px-2.5 font-medium',
            value === one
              ? 'border-accent bg-accent-soft text-accent-text'
              : 'border-line-strong bg-raised text-text hover:bg-hover',
          )}
          key={one}
          onClick={() => onChoose(one)}
          type="button"
        >
          {looks[one].text}
          <kbd className="font-sans text-muted text-xs uppercase">{looks[one].key}</kbd>
        </button>
      ))}
    </fieldset>
  )
}
