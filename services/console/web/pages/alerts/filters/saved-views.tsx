/** The menu of saved views, and the dialog that names a new one. */
import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Input } from '../../../components/field.tsx'
import { Icon } from '../../../components/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../../components/menu.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { pickFilters, replaceFilters } from './filter-values.ts'
import { builtIn, isSameView, keepViews, readViews, type View } from './views.ts'

export function SavedViews({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const [own, setOwn] = useState(() => readViews(tenant))
  const [naming, setNaming] = useState(false)
  const filters = pickFilters(search)
  const present = [...own, ...builtIn].find((view) => isSameView(view.filters, filters))
  const isOwn = present !== undefined && own.includes(present)
  const keep = (views: View[]) => {
    setOwn(views)
    if (!keepViews(tenant, views)) toastFailure('This browser keeps no views: its storage is off.')
  }
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button>
            {present?.name ?? 'Views'}
            <Icon name="down" size={12} />
          </Button>
        }
      >
        {[...builtIn, ...own].map((view) => (
          <MenuItem key={view.name} onSelect={() => change(replaceFilters(view.filters))}>
            <span className="w-4">{view === present && <Icon name="check" size={14} />}</span>
            {view.name}
          </MenuItem>
        ))}
        <MenuLine />
        {isOwn ? (
          <MenuItem
            onSelect={() => {
              keep(own.filter((view) => view !== present))
              toast(`View ${present.name} removed`, { onUndo: () => keep(own) })
            }}
          >
            <span className="w-4" />
            Remove this view
          </MenuItem>
        ) : (
          <MenuItem onSelect={() => setNaming(true)}>
            <span className="w-4" />
            Save these filters as a view
          </MenuItem>
        )}
      </Menu>
      <NameView
        onClose={() => setNaming(false)}
        onName={(name) => keep([...own.filter((view) => view.name !== name), { name, filters }])}
        open={naming}
        taken={builtIn.map(({ name }) => name)}
      />
    </>
  )
}

function NameView({
  open,
  onClose,
  onName,
  taken,
}: {
  open: boolean
  onClose: () => void
  onName: (name: string) => void
  taken: string[]
}) {
  const [name, setName] = useState('')
  const error = taken.includes(name.trim()) ? 'A built-in view has this name.' : undefined
  return (
    <Dialog onClose={onClose} open={open} title="Save a view">
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (name.trim() === '' || error !== undefined) return
          onName(name.trim())
          setName('')
          onClose()
        }}
      >
        <Input
          autoFocus
          error={error}
          hint="Kept in this browser."
          label="Name"
          maxLength={60}
          onChange={({ target }) => setName(target.value)}
          value={name}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button disabled={name.trim() === ''} look="primary" type="submit">
            Save
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
