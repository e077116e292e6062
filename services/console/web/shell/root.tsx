/**
 * The whole window: the invitation page, the sign-in page or the shell. Signing in happens at the
 * address that was opened, so there is no redirect and nothing to come back to. When a session ends
 * while a page is open, the page stays below the sign-in page and goes on afterwards. The sign-in
 * page is a dialog then, because another dialog may be open.
 */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazyRouteComponent, useLocation } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { Suspense, useEffect, useState } from 'react'
import { sessionPrompts } from '../api/client.ts'
import { type SignedIn, sessionQuery } from '../api/session.ts'
import { Failed, Slow } from '../components/states.tsx'
import { Toasts } from '../components/toast.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { StepUp } from './step-up.tsx'

// Few people see these, and each of them once.
const Invite = lazyRouteComponent(() => import('./invite.tsx'), 'Invite')
const OidcReturn = lazyRouteComponent(() => import('./oidc/return.tsx'), 'OidcReturn')

export function Root() {
  const session = useQuery(sessionQuery)
  const client = useQueryClient()
  const { pathname } = useLocation()
  const [ended, setEnded] = useState(false)
  const shown = session.data

  useEffect(() => {
    sessionPrompts.signIn = () => setEnded(true)
    return () => {
      sessionPrompts.signIn = () => undefined
    }
  }, [])

  const enter = (next: SignedIn) => {
    const isOther = shown?.operator.operator_id !== next.operator.operator_id
    // What one operator has seen is not shown to another.
    if (isOther) client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
    client.setQueryData(sessionQuery.queryKey, next)
    setEnded(false)
    void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
  }

  if (pathname === '/invite' || pathname === '/oidc') {
    const Page = pathname === '/invite' ? Invite : OidcReturn
    return (
      <Suspense>
        <Page onSignedIn={enter} />
      </Suspense>
    )
  }
  if (session.isPending) return <Slow onRetry={() => void session.refetch()} />
  if (shown === undefined) {
    return <Failed error={session.error} onRetry={() => void session.refetch()} />
  }
  if (shown === null) return <SignIn onSignedIn={enter} />
  return (
    <>
      <Shell key={shown.operator.operator_id} signedIn={shown} />
      <StepUp signedIn={shown} />
      <Toasts />
      <Dialog.Root open={ended}>
        <Dialog.Portal>
          <Dialog.Content
            aria-describedby={undefined}
            aria-label="Sign in"
            aria-labelledby={undefined}
            className="fixed inset-0 z-60 overflow-auto bg-page outline-none"
          >
            <SignIn email={shown.operator.email} onSignedIn={enter} />
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
    </>
  )
}
