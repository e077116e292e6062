/** The menu of saved views of the queue, which the server keeps and colleagues can see. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { savedViewNameCharactersMax } from '#shared/core/base/limits/alerts.ts'
import { api, ok } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Checkbox, Input } from '../../../components/field.tsx'
import { Icon } from '../../../components/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../../components/menu.tsx'
import { type Search, useUrlSearch } from '../../../components/state/url-state.ts'
import { Refused } from '../../../components/states.tsx'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { isSameView } from '../../alerts/filters/views.ts'
import { pickFilters, replaceFilters } from './filter-values.ts'

/** Views that every tenant has. */
const builtIn: readonly { name: string; query: Search }[] = [
  { name: 'Open', query: {} },
  { name: 'Mine', query: { assignee: 'me' } },
  { name: 'Blocked, highest risk', query: { action: 'BLOCK', sort: 'risk' } },
  { name: 'All', query: { state: 'all' } },
]

const keyOf = (tenant: string) => ['views', tenant, 'cases']

const saveView = (tenant: string, view: { name: string; query: Search; shared: boolean }) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/saved-views', {
      params: { path: { tenant_id: tenant } },
      body: { kind: 'cases', ...view },
    }),
  )

export function SavedViews({ tenant }: { tenant: string }) {
  const client = useQueryClient()
  const [search, change] = useUrlSearch()
  const [naming, setNaming] = useState(false)
  const views = useQuery({
    queryKey: keyOf(tenant),
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/saved-views', {
          params: { path: { tenant_id: tenant }, query: { kind: 'cases' } },
        }),
      ),
  })
  const saved = views.data?.data ?? []
  // Those of others as well, when they are shared.
  const mayRemove = useMay('admin')
  const maySave = useMay('analyst')
  const filters = pickFilters(search)
  const readAgain = () => client.invalidateQueries({ queryKey: keyOf(tenant) })
  const isPresent = (view: { query: Search }) => isSameView(view.query, filters)
  const present = saved.find(isPresent)
  const name = present?.name ?? builtIn.find(isPresent)?.name
  const remove = useMutation({
    mutationFn: (view: (typeof saved)[number]) =>
      ok(
        api.DELETE('/admin/v1/tenants/{tenant_id}/saved-views/{view_id}', {
          params: { path: { tenant_id: tenant, view_id: view.view_id } },
        }),
      ),
    onSuccess: async (_, { name: removed, query, shared }) => {
      await readAgain()
      toast(`View ${removed} removed`, {
        onUndo: () => void saveView(tenant, { name: removed, query, shared }).then(readAgain),
      })
    },
    onError: (error) => toastFailure(`Not removed: ${error.message}`),
  })
  const open = (query: Search) => change(replaceFilters(query))
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button>
            <span className="max-w-48 truncate">{name ?? 'Views'}</span>
            <Icon name="down" size={12} />
          </Button>
        }
      >
        {builtIn.map((view) => (
          <MenuItem key={view.name} onSelect={() => open(view.query)}>
            <span className="w-4">{isPresent(view) && <Icon name="check" size={14} />}</span>
            {view.name}
          </MenuItem>
        ))}
        {saved.length > 0 && <MenuLine />}
        {saved.map((view) => (
          <MenuItem key={view.view_id} onSelect={() => open(view.query)}>
            <span className="w-4">{view === present && <Icon name="check" size={14} />}</span>
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
        {maySave && <MenuLine />}
        {!maySave ? null : present !== undefined && (present.own || mayRemove) ? (
          <MenuItem onSelect={() => remove.mutate(present)}>
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
      {naming && (
        <NameView
          onClose={() => setNaming(false)}
          onSave={(view) => saveView(tenant, { ...view, query: filters }).then(readAgain)}
          taken={builtIn.map((view) => view.name)}
        />
      )}
    </>
  )
}

function NameView({
  onClose,
  onSave,
  taken,
}: {
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
    <Dialog onClose={onClose} open title="Save a view">
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="off"
          autoFocus
          error={error}
          hint="A view of yours with this name is replaced."
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
