/** The menu that chooses the columns of the list, which are in the address. */
import { DropdownMenu } from 'radix-ui'
import { Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { listColumns, readColumns, writeColumns } from './columns.tsx'

const itemClasses =
  'flex h-8 cursor-pointer items-center gap-2 rounded px-2 outline-none select-none data-highlighted:bg-hover'

export function ColumnsMenu() {
  const [list, setList] = useUrlState('columns')
  const shown = readColumns(list === '' ? undefined : list)
  const toggle = (id: string) =>
    setList(writeColumns(shown.includes(id) ? shown.filter((one) => one !== id) : [...shown, id]))
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <Button>
          Columns
          <Icon name="down" size={12} />
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          className="z-30 max-h-[min(28rem,70dvh)] min-w-48 overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-xl"
          collisionPadding={8}
          sideOffset={4}
        >
          {listColumns.map(({ id, text }) => (
            <DropdownMenu.CheckboxItem
              checked={shown.includes(id)}
              className={itemClasses}
              // A table has a column.
              disabled={shown.length === 1 && shown.includes(id)}
              key={id}
              onCheckedChange={() => toggle(id)}
              // The menu stays, for the next column.
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
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
