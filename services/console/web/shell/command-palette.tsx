/**
 * The command palette (Ctrl/Cmd-K): pages, tenants and ids by typing. Arrow keys choose, Enter
 * opens. The tenant switcher is the same list with tenants alone.
 */
import { useQuery } from '@tanstack/react-query'
import { useLocation, useNavigate, useParams } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { tenantsQuery } from '../api/tenants.ts'
import { classes } from '../components/classes.ts'
import { Icon } from '../components/icons.tsx'
import { useReturnFocus } from '../components/state/return-focus.ts'
import { useFoundIds } from './found-ids.ts'
import { usePlaces } from './navigation.tsx'
import { usePages } from './page-list.ts'
import type { Entry } from './palette/entry.ts'
import { useFoundWords } from './palette/found-words.ts'
import { useKeepRecent, useRecentPages } from './palette/recent-pages.ts'

export type PaletteKind = 'all' | 'tenants'

const shownMax = 30

export function CommandPalette({
  kind,
  onClose,
}: {
  kind: PaletteKind | null
  onClose: () => void
}) {
  useKeepRecent()
  const focus = useReturnFocus(kind !== null)
  return (
    <Dialog.Root onOpenChange={(open) => !open && onClose()} open={kind !== null}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-shade" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[12dvh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-raised shadow-2xl"
          {...focus}
        >
          <Dialog.Title className="sr-only">
            {kind === 'tenants' ? 'Switch tenant' : 'Search'}
          </Dialog.Title>
          {kind !== null && <Palette kind={kind} onClose={onClose} />}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Palette({ kind, onClose }: { kind: PaletteKind; onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const navigate = useNavigate()
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const entries = useEntries(kind, text.trim())
  const chosen = Math.min(at, entries.length - 1)

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  })
  const open = (entry: Entry | undefined) => {
    if (entry === undefined) return
    onClose()
    void navigate({ href: entry.to })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && entries.length > 0) {
      event.preventDefault()
      setAt((chosen + step + entries.length) % entries.length)
    }
    if (event.key === 'Enter') open(entries[chosen])
  }
  return (
    <>
      <div className="flex items-center gap-2.5 border-line border-b px-4 text-muted">
        <Icon name="search" />
        <input
          aria-activedescendant={entries.length > 0 ? `${id}-${chosen}` : undefined}
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-expanded="true"
          aria-label={kind === 'tenants' ? 'Tenant' : 'Page, tenant or id'}
          autoComplete="off"
          className="h-12 flex-1 bg-transparent text-lg text-text -outline-offset-2 placeholder:text-muted"
          onChange={({ target }) => {
            setText(target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          placeholder={kind === 'tenants' ? 'Find a tenant' : 'Find a page, a tenant or an id'}
          role="combobox"
          spellCheck={false}
          value={text}
        />
      </div>
      <div
        aria-label="Found"
        className="max-h-[50dvh] overflow-y-auto p-1.5"
        id={`${id}-list`}
        ref={list}
        role="listbox"
        tabIndex={-1}
      >
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys
          <div
            aria-selected={index === chosen}
            className={classes(
              'flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5',
              index === chosen && 'bg-hover',
            )}
            id={`${id}-${index}`}
            key={entry.key}
            onClick={() => open(entry)}
            onPointerMove={() => setAt(index)}
            role="option"
            tabIndex={-1}
          >
            <Icon name={entry.icon} />
            <span className={entry.key.startsWith('tenant ') ? 'break-all' : 'truncate'}>
              <bdi>{toVisible(entry.text)}</bdi>
            </span>
            {entry.more && <span className="min-w-0 flex-1 truncate text-muted">{entry.more}</span>}
            <span className="ml-auto shrink-0 text-muted text-sm">{entry.kind}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 && (
        <p className="px-4 pb-5 text-center text-muted" role="status">
          Nothing has this name.
        </p>
      )}
    </>
  )
}

/**
 * What the text finds: ids first, because they are exact, then pages, what events are found by, and
 * tenants. Without a text, the pages that were open last.
 */
function useEntries(kind: PaletteKind, text: string): Entry[] {
  const places = usePlaces()
  const { data: tenants = [] } = useQuery(tenantsQuery)
  const toTenant = useTenantAddress()
  const has = (...words: string[]) =>
    words.some((word) => word.toLowerCase().includes(text.toLowerCase()))
  const allowed = usePages()
  const words = useFoundWords(kind === 'all' ? text : '')
  const recent = useRecentPages()
  const ids = useFoundIds(kind === 'all' ? text : '').map(
    ({ kind: what, tenant, id, to }): Entry => ({
      key: `${what} ${tenant} ${id}`,
      kind: `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`,
      text: id,
      more: tenant,
      icon: 'search',
      to,
    }),
  )
  const admin = allowed.flatMap(({ path, nav }): Entry[] => {
    if (nav === undefined || !('of' in nav)) return []
    return [{ key: path, kind: 'Admin', text: nav.name, icon: 'admin', to: path }]
  })
  const own = places.map(
    ({ name, icon, address: to }): Entry => ({ key: to, kind: 'Page', text: name, icon, to }),
  )
  const account: Entry = {
    key: '/account',
    kind: 'Page',
    text: 'Account',
    icon: 'person',
    to: '/account',
  }
  const help: Entry = { key: '/help', kind: 'Page', text: 'Help', icon: 'help', to: '/help' }
  const ofTenants = tenants
    .filter(({ tenant_id, name }) => has(tenant_id, name))
    .map(
      ({ tenant_id, name, environment }): Entry => ({
        key: `tenant ${tenant_id}`,
        kind: `Tenant, ${environment}`,
        text: tenant_id,
        more: name,
        icon: 'right',
        to: toTenant(tenant_id),
      }),
    )
  if (kind === 'tenants') return ofTenants.slice(0, shownMax)
  if (text === '' && recent.length > 0) return [...recent, ...own, ...admin].slice(0, shownMax)
  const named = [...own.filter(({ text: name }) => name !== 'Admin'), ...admin, account, help]
  const pages = named.filter(({ text: name }) => has(name))
  return [...ids, ...pages, ...words, ...ofTenants].slice(0, shownMax)
}

/** The page that is open, for another tenant; else the first page about a tenant. */
function useTenantAddress(): (tenant: string) => string {
  const { pathname } = useLocation()
  const { tenant: here } = useParams({ strict: false })
  const first = usePages().find(({ path, nav }) => path.startsWith('/t/') && nav !== undefined)
  return (tenant) => {
    if (here !== undefined && pathname.includes(`/${here}`)) {
      // The third part of an address is a row of the tenant, which another one does not have.
      const parts = pathname.split('/').map((part) => (part === here ? tenant : part))
      return parts.slice(0, 4).join('/')
    }
    return (first?.path ?? '/manage/integrations/$tenant').replace('$tenant', tenant)
  }
}
