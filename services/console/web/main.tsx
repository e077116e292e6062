/** The console's entry in the browser. */
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/query-client.ts'
import { router } from './router.tsx'
import './styles.css'

// Dialogs make a style element, which the content security policy allows with this.
const meta = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')
Object.assign(globalThis, { __webpack_nonce__: meta?.nonce })

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)

// A browser leaves what is partly in view as it is: with its ring it comes into view.
addEventListener('focusin', ({ target }) => {
  if (!(target instanceof HTMLElement) || !target.matches(':focus-visible')) return
  target.scrollIntoView({ block: 'nearest', inline: 'nearest' })
})
