/**
 * The router: made from the list of pages, under the prefix that the document was served with.
 * Search parameters are plain text, so that a person can read and write them.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type SearchSchemaInput,
} from '@tanstack/react-router'
import { prefix } from './api/client.ts'
import type { Search } from './components/state/url-state.ts'
import { Failed, SkeletonRows, Waiting } from './components/states.tsx'
import { pages } from './pages.ts'
import { NotFound } from './shell/not-found.tsx'
import { type PageEntry, PagesContext } from './shell/page-list.ts'
import { Root } from './shell/root.tsx'
import { Start } from './shell/start.tsx'

const root = createRootRoute({
  // Every page reads the parameters that it knows.
  validateSearch: (search: Search & SearchSchemaInput): Search => search,
  component: () => (
    <PagesContext value={pages}>
      <Root />
    </PagesContext>
  ),
  notFoundComponent: NotFound,
})

const toRoute = <const Path extends string>({
  path,
  load,
}: {
  path: Path
  load: PageEntry['load']
}) => createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load, 'Page') })

/** A route for each page with its own path, which `map` alone would lose. */
type RoutesOf<All extends readonly PageEntry[]> = {
  -readonly [At in keyof All]: ReturnType<typeof toRoute<All[At]['path']>>
}
const routes = pages.map((page) => toRoute(page)) as unknown as RoutesOf<typeof pages>
const start = createRoute({ getParentRoute: () => root, path: '/', component: Start })

export const router = createRouter({
  routeTree: root.addChildren([start, ...routes]),
  basepath: prefix === '' ? '/' : prefix,
  defaultPreload: 'intent',
  defaultPendingMs: 300,
  // The file of a page may not come either.
  defaultPendingComponent: () => (
    <Waiting onRetry={() => location.reload()}>
      <SkeletonRows />
    </Waiting>
  ),
  defaultErrorComponent: ({ error, reset }) => <Failed error={error} onRetry={reset} />,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(search as Record<string, string>).toString()
    return text === '' ? '' : `?${text}`
  },
})

declare module '@tanstack/react-router' {
  /** So that `Link` and `navigate` take addresses of these pages alone, with their parameters. */
  interface Register {
    router: typeof router
  }
}
