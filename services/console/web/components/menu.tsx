/** A menu below its button. */
import { DropdownMenu as Primitive } from 'radix-ui'
import type { ReactNode } from 'react'
import { Icon } from './icons.tsx'

const itemClasses =
  'flex h-8 items-center gap-2 rounded px-2 -outline-offset-2 select-none data-highlighted:bg-hover ' +
  'data-disabled:opacity-60 cursor-pointer no-underline text-text'

export function Menu({
  trigger,
  children,
  align = 'end',
}: {
  trigger: ReactNode
  children: ReactNode
  align?: 'start' | 'end'
}) {
  return (
    <Primitive.Root modal={false}>
      <Primitive.Trigger asChild>{trigger}</Primitive.Trigger>
      <Primitive.Portal>
        <Primitive.Content
          align={align}
          className="z-30 min-w-52 rounded-lg border border-line bg-raised p-1 shadow-xl"
          collisionPadding={8}
          sideOffset={4}
        >
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}

export function MenuItem({ onSelect, children }: { onSelect: () => void; children: ReactNode }) {
  return (
    <Primitive.Item className={itemClasses} onSelect={onSelect}>
      {children}
    </Primitive.Item>
  )
}

/** One choice of several, checked when it is the present one. */
export function MenuChoice<T extends string>({
  label,
  value,
  choices,
  onChoose,
}: {
  label: string
  value: T
  choices: [value: T, text: string][]
  onChoose: (value: T) => void
}) {
  return (
    <>
      <Primitive.Label className="px-2 pt-2 pb-1 text-muted text-xs">{label}</Primitive.Label>
      <Primitive.RadioGroup onValueChange={(next) => onChoose(next as T)} value={value}>
        {choices.map(([choice, text]) => (
          <Primitive.RadioItem className={itemClasses} key={choice} value={choice}>
            <span className="w-4">
              <Primitive.ItemIndicator>
                <Icon name="check" size={14} />
              </Primitive.ItemIndicator>
            </span>
            {text}
          </Primitive.RadioItem>
        ))}
      </Primitive.RadioGroup>
    </>
  )
}

export function MenuLine() {
  return <Primitive.Separator className="-mx-1 my-1 h-px bg-line" />
}
