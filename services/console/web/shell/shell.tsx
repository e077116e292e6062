/** The frame around every page: navigation, tenant switcher, account menu and command palette. */
import { lazyRouteComponent, Outlet, useLocation } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { Suspense, useEffect, useState } from 'react'
import type { SignedIn } from '../api/session.ts'
import { Button, IconButton } from '../components/button.tsx'
import { useReturnFocus } from '../components/state/return-focus.ts'
import { Toasts } from '../components/toast.tsx'
import { AccountMenu } from './account-menu.tsx'
import type { PaletteKind } from './command-palette.tsx'
import { AdminTabs, Navigation } from './navigation.tsx'
import { OperatorContext } from './operator.ts'
import { HeaderTenant, TenantSwitcher } from './tenant-switcher.tsx'

/** Loaded once the first page is shown, before anyone opens it. */
const CommandPalette = lazyRouteComponent(() => import('./command-palette.tsx'), 'CommandPalette')

export function Shell({ signedIn }: { signedIn: SignedIn }) {
  const { operator } = signedIn
  const [palette, setPalette] = useState<PaletteKind | null>(null)
  const [drawer, setDrawer] = useState(false)
  const { pathname } = useLocation()
  const focus = useReturnFocus(drawer)

  // A drawer that was used to go somewhere has done its work.
  useEffect(() => setDrawer(false), [pathname])
  useEffect(() => void import('./cut-texts.ts').then((file) => file.watchCutTexts()), [])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      setPalette((open) => (open === null ? 'all' : null))
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])

  const side = (
    <>
      <div className="px-3 pt-3 pb-1">
        <TenantSwitcher onOpen={() => setPalette('tenants')} />
      </div>
      <div className="px-3 pb-2">
        <Button
          className="w-full justify-between! font-normal! text-muted!"
          icon="search"
          onClick={() => setPalette('all')}
        >
          <span className="flex-1 text-left">Search</span>
          <kbd className="font-sans text-xs">{isMac ? '⌘K' : 'Ctrl K'}</kbd>
        </Button>
      </div>
      <Navigation />
      <div className="mt-auto border-line border-t p-2">
        <AccountMenu operator={operator} />
      </div>
    </>
  )
  return (
    <OperatorContext value={signedIn}>
      <button
        className="-top-12 fixed left-2 z-50 rounded-md bg-raised px-3 py-2 focus:top-2"
        onClick={() => document.getElementById('main')?.focus()}
        type="button"
      >
        Skip to the page
      </button>
      <div className="flex h-full flex-col md:flex-row">
        <aside className="hidden w-56 shrink-0 flex-col border-line border-r bg-panel md:flex">
          {side}
        </aside>
        <header className="flex min-h-12 shrink-0 items-center gap-2 border-line border-b bg-panel px-2 md:hidden">
          <IconButton icon="menu" label="Open the navigation" onClick={() => setDrawer(true)} />
          <HeaderTenant />
          <IconButton icon="search" label="Search" onClick={() => setPalette('all')} />
        </header>
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <main className="min-h-0 flex-1 overflow-auto outline-none" id="main" tabIndex={-1}>
            <AdminTabs />
            <Outlet />
          </main>
          <Toasts />
        </div>
      </div>
      <Dialog.Root onOpenChange={setDrawer} open={drawer}>
        <Dialog.Portal>
          <Dialog.Overlay className="fixed inset-0 z-40 bg-shade" />
          <Dialog.Content
            aria-describedby={undefined}
            {...focus}
            className="fixed inset-y-0 left-0 z-50 flex w-64 flex-col border-line border-r bg-panel shadow-2xl"
          >
            <Dialog.Title className="sr-only">Navigation</Dialog.Title>
            {side}
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      <Suspense>
        <CommandPalette kind={palette} onClose={() => setPalette(null)} />
      </Suspense>
    </OperatorContext>
  )
}

const isMac = /mac/i.test(navigator.userAgent)
