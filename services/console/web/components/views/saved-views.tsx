/** The menu of saved views of a page, which the server keeps and colleagues can see. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { savedViewNameCharactersMax } from '#shared/core/base/limits/alerts.ts'
import { api, ok } from '../../api/client.ts'
import { useMay } from '../../shell/operator.ts'
import { Button } from '../button.tsx'
import { Dialog, DialogActions } from '../dialog.tsx'
import { Checkbox, Input } from '../field.tsx'
import { Icon } from '../icons.tsx'
import { Menu, MenuItem, MenuLine } from '../menu.tsx'
import type { Search } from '../state/url-state.ts'
import { Refused } from '../states.tsx'
import { toast, toastFailure } from '../toast.tsx'
import { isSameView, saveView, type ViewKind, viewsQuery } from './views.ts'

type Noun = 'view' | 'query'

const texts = {
  view: { none: 'Views', removed: 'View', save: 'Save these filters as a view' },
  query: { none: 'Saved queries', removed: 'Query', save: 'Save this query' },
}

/**
 * @param noun what the page calls one
 * @param builtIn views that every tenant has
 * @param query the filters of the page as they are now
 * @param onOpen puts the filters of a view in their place
 */
export function SavedViews({
  tenant,
  kind,
  noun = 'view',
  builtIn = [],
  query: present,
  onOpen,
}: {
  tenant: string
  kind: ViewKind
  noun?: Noun
  builtIn?: readonly { name: string; query: Search }[]
  query: Search
  onOpen: (query: Search) => void
}) {
  const client = useQueryClient()
  const [naming, setNaming] = useState(false)
  const views = useQuery(viewsQuery(tenant, kind))
  const saved = views.data?.data ?? []
  // Those of others as well, when they are shared.
  const mayRemove = useMay('admin')
  const maySave = useMay('analyst')
  const readAgain = () => client.invalidateQueries({ queryKey: viewsQuery(tenant, kind).queryKey })
  const isPresent = (view: { query: Search }) => isSameView(view.query, present)
  const shown = saved.find(isPresent)
  const name = shown?.name ?? builtIn.find(isPresent)?.name
  const remove = useMutation({
    mutationFn: (view: (typeof saved)[number]) =>
      ok(
        api.DELETE('/admin/v1/tenants/{tenant_id}/saved-views/{view_id}', {
          params: { path: { tenant_id: tenant, view_id: view.view_id } },
        }),
      ),
    onSuccess: async (_, { name: removed, query, shared }) => {
      await readAgain()
      toast(`${texts[noun].removed} ${removed} removed`, {
        onUndo: () => void saveView(tenant, { kind, name: removed, query, shared }).then(readAgain),
      })
    },
    onError: (error) => toastFailure(`Not removed: ${error.message}`),
  })
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button>
            <span className="max-w-48 truncate">{name ?? texts[noun].none}</span>
            <Icon name="down" size={12} />
          </Button>
        }
      >
        {builtIn.map((view) => (
          <MenuItem key={view.name} onSelect={() => onOpen(view.query)}>
            <span className="w-4">{isPresent(view) && <Icon name="check" size={14} />}</span>
            {view.name}
          </MenuItem>
        ))}
        {builtIn.length > 0 && saved.length > 0 && <MenuLine />}
        {saved.map((view) => (
          <MenuItem key={view.view_id} onSelect={() => onOpen(view.query)}>
            <span className="w-4">{view === shown && <Icon name="check" size={14} />}</span>
            <span className="max-w-56 truncate">{view.name}</span>
            {!view.own ? (
              <span className="ml-auto max-w-32 truncate pl-4 text-muted text-sm">
                {view.owner.split('@')[0]}
              </span>
            ) : (
              view.shared && <span className="ml-auto pl-4 text-muted text-sm">shared</span>
            )}
          </MenuItem>
        ))}
        {maySave && builtIn.length + saved.length > 0 && <MenuLine />}
        {!maySave ? null : shown !== undefined && (shown.own || mayRemove) ? (
          <MenuItem onSelect={() => remove.mutate(shown)}>
            <span className="w-4" />
            Remove this {noun}
          </MenuItem>
        ) : (
          <MenuItem onSelect={() => setNaming(true)}>
            <span className="w-4" />
            {texts[noun].save}
          </MenuItem>
        )}
      </Menu>
      {naming && (
        <NameView
          noun={noun}
          onClose={() => setNaming(false)}
          onSave={(view) => saveView(tenant, { kind, ...view, query: present }).then(readAgain)}
          taken={builtIn.map((view) => view.name)}
        />
      )}
    </>
  )
}

function NameView({
  noun,
  onClose,
  onSave,
  taken,
}: {
  noun: Noun
  onClose: () => void
  onSave: (view: { name: string; shared: boolean }) => Promise<unknown>
  taken: string[]
}) {
  const [name, setName] = useState('')
  const [shared, setShared] = useState(false)
  const save = useMutation({ mutationFn: onSave, onSuccess: onClose })
  const error = taken.includes(name.trim()) ? 'A built-in view has this name.' : undefined
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() !== '' && error === undefined) save.mutate({ name: name.trim(), shared })
  }
  return (
    <Dialog onClose={onClose} open title={`Save a ${noun}`}>
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          error={error}
          hint={`A ${noun} of yours with this name is replaced.`}
          label="Name"
          maxLength={savedViewNameCharactersMax}
          onChange={({ target }) => setName(target.value)}
          value={name}
        />
        <Checkbox
          checked={shared}
          hint="All who may see this tenant find it in their menu."
          label="Share it"
          onChange={({ target }) => setShared(target.checked)}
        />
        <Refused error={save.error} />
        <DialogActions>
          <Button disabled={save.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button
            busy={save.isPending}
            disabled={name.trim() === '' || error !== undefined}
            look="primary"
            type="submit"
          >
            Save
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
