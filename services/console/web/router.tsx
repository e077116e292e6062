/**
 * The router: made from the list of pages, under the prefix that the document was served with.
 * Search parameters are plain text, so that a person can read and write them.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from '@tanstack/react-router'
import { prefix } from './api/client.ts'
import { Failed, SkeletonRows } from './components/states.tsx'
import { pages } from './pages.ts'
import { NotFound } from './shell/not-found.tsx'
import { PagesContext } from './shell/page-list.ts'
import { Root } from './shell/root.tsx'
import { Start } from './shell/start.tsx'

const root = createRootRoute({
  component: () => (
    <PagesContext value={pages}>
      <Root />
    </PagesContext>
  ),
  notFoundComponent: NotFound,
})

const routes = pages.map(({ path, load }) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load, 'Page') }),
)
const start = createRoute({ getParentRoute: () => root, path: '/', component: Start })

export const router = createRouter({
  routeTree: root.addChildren([start, ...routes]),
  basepath: prefix === '' ? '/' : prefix,
  defaultPreload: 'intent',
  defaultPendingMs: 300,
  defaultPendingComponent: () => <SkeletonRows />,
  defaultErrorComponent: ({ error, reset }) => <Failed error={error} onRetry={reset} />,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(search as Record<string, string>).toString()
    return text === '' ? '' : `?${text}`
  },
})
