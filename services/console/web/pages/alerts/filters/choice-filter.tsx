/** A filter of several values: a menu whose entries are switched on and off. */
import { DropdownMenu } from 'radix-ui'
import { classes } from '../../../components/classes.ts'
import { FilterButton } from '../../../components/find/filter-button.tsx'
import { Icon } from '../../../components/icons.tsx'
import { useUrlState } from '../../../components/state/url-state.ts'
import { toggleValue } from './filter-values.ts'

const itemClasses =
  'flex h-8 cursor-pointer items-center gap-2 rounded px-2 outline-none select-none data-highlighted:bg-hover'

export function ChoiceFilter({
  name,
  label,
  values,
}: {
  name: string
  label: string
  values: readonly (readonly [value: string, text: string])[]
}) {
  const [list, setList] = useUrlState(name)
  const chosen = list === '' ? [] : list.split(',')
  const texts = values.filter(([value]) => chosen.includes(value)).map(([, text]) => text)
  const more = texts.length > 1 ? ` +${texts.length - 1}` : ''
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <FilterButton label={label} text={texts.length > 0 ? texts[0] + more : ''} />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          className="z-30 max-h-[min(24rem,70dvh)] min-w-48 overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-xl"
          collisionPadding={8}
          sideOffset={4}
        >
          {values.map(([value, text]) => (
            <DropdownMenu.CheckboxItem
              checked={chosen.includes(value)}
              className={itemClasses}
              key={value}
              onCheckedChange={() => setList(toggleValue(list, value))}
              // The menu stays, for the next value.
              onSelect={(event) => event.preventDefault()}
            >
              <span className="w-4">
                <DropdownMenu.ItemIndicator>
                  <Icon name="check" size={14} />
                </DropdownMenu.ItemIndicator>
              </span>
              {text}
            </DropdownMenu.CheckboxItem>
          ))}
          {list !== '' && (
            <DropdownMenu.Item
              className={classes(itemClasses, 'mt-1 border-line border-t text-muted')}
              onSelect={() => setList('')}
            >
              <span className="w-4" />
              Any
            </DropdownMenu.Item>
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
