/**
 * A choice that is found by typing: a button, and below it a box and the list of what it finds.
 * Arrow keys and Enter choose, Escape closes and gives the focus back to the button.
 */
import { Popover } from 'radix-ui'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { classes } from '../classes.ts'
import { Icon } from '../icons.tsx'
import { type FindChoice, findChoices } from './find-choices.ts'

/** Rows in the list; what is beyond is found by typing. */
const shownMax = 80

/** @param children the list, which is asked for only once it is open; `close` closes it */
export function FindMenu({
  label,
  trigger,
  children,
}: {
  label: string
  trigger: ReactNode
  children: (close: () => void) => ReactNode
}) {
  const [open, setOpen] = useState(false)
  return (
    <Popover.Root onOpenChange={setOpen} open={open}>
      <Popover.Trigger asChild>{trigger}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          aria-label={label}
          className="z-50 w-80 max-w-[calc(100vw-1rem)] overflow-hidden rounded-lg border border-line bg-raised shadow-xl"
          collisionPadding={8}
          sideOffset={4}
        >
          {children(() => setOpen(false))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  )
}

/**
 * The box and the list.
 * @param many whether several can be chosen
 * @param unit what the counts are of: `alerts`
 * @param toTyped what may be chosen as it is typed, though no choice has it
 * @param note said below the list, as why counts are missing
 */
export function FindList({
  label,
  choices,
  chosen,
  many = false,
  unit,
  toTyped,
  note,
  children,
  onChoose,
}: {
  label: string
  choices: readonly FindChoice[]
  chosen: readonly string[]
  many?: boolean
  unit?: string
  toTyped?: (text: string) => FindChoice | null
  note?: ReactNode
  /** Below the list, such as a button that clears the choice. */
  children?: ReactNode
  onChoose: (value: string) => void
}) {
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const text = typed.trim()
  const own = text === '' || choices.some(({ value }) => value === text) ? null : toTyped?.(text)
  const found = [...findChoices(choices, typed), ...(own ? [own] : [])]
  const shown = found.slice(0, shownMax)
  const active = Math.min(at, shown.length - 1)
  useEffect(() => {
    list.current?.querySelector(`[id="${id}-${active}"]`)?.scrollIntoView({ block: 'nearest' })
  }, [id, active])
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && shown.length > 0) {
      event.preventDefault()
      setAt((active + step + shown.length) % shown.length)
    }
    if (event.key === 'Enter') {
      event.preventDefault()
      if (shown[active] !== undefined) onChoose(shown[active].value)
    }
  }
  return (
    <>
      <div className="flex items-center gap-2 border-line border-b px-3 text-muted">
        <Icon name="search" size={14} />
        <input
          aria-activedescendant={shown.length > 0 ? `${id}-${active}` : undefined}
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-expanded="true"
          aria-label={`Find: ${label}`}
          autoComplete="off"
          className="h-9 min-w-0 flex-1 bg-transparent text-text outline-none placeholder:text-muted"
          onChange={({ target }) => {
            setTyped(target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          placeholder="Find"
          role="combobox"
          spellCheck={false}
          value={typed}
        />
      </div>
      <div
        aria-label={label}
        aria-multiselectable={many}
        className="max-h-[min(20rem,50dvh)] overflow-y-auto p-1"
        id={`${id}-list`}
        ref={list}
        role="listbox"
        tabIndex={-1}
      >
        {shown.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys
          <div
            aria-selected={chosen.includes(choice.value)}
            className={classes(
              'flex min-h-8 cursor-pointer items-center gap-2 rounded px-2 py-1',
              index === active && 'bg-hover',
            )}
            id={`${id}-${index}`}
            key={choice.value}
            onClick={() => onChoose(choice.value)}
            onPointerMove={() => setAt(index)}
            role="option"
            tabIndex={-1}
          >
            <span className="w-4 shrink-0">
              {chosen.includes(choice.value) && <Icon name="check" size={14} />}
            </span>
            <span className="min-w-0 flex-1">
              <span className="line-clamp-2 wrap-anywhere">{choice.text}</span>
              {choice.code && (
                <span className="block truncate font-mono text-muted text-xs">{choice.code}</span>
              )}
            </span>
            {choice.count !== undefined && (
              <span className="shrink-0 text-muted text-sm">
                {choice.count.toLocaleString('en')}
                <span className="sr-only"> {unit}</span>
              </span>
            )}
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p className="px-3 pb-3 text-muted" role="status">
          Nothing has this name.
        </p>
      )}
      {found.length > shown.length && (
        <p className="px-3 pb-2 text-muted text-sm">
          {(found.length - shown.length).toLocaleString('en')} more are found by typing.
        </p>
      )}
      {note && <p className="border-line border-t px-3 py-2 text-muted text-sm">{note}</p>}
      {children}
    </>
  )
}
