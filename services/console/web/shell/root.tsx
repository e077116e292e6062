/**
 * The whole window: the invitation page, the sign-in page or the shell. Signing in happens at the
 * address that was opened, so there is no redirect and nothing to come back to. When a session ends
 * while a page is open, the page stays below the sign-in page and goes on afterwards. The sign-in
 * page is a dialog then, because another dialog may be open.
 */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazyRouteComponent, useLocation } from '@tanstack/react-router'
import { Dialog } from 'radix-ui'
import { Suspense, useEffect, useRef, useState } from 'react'
import { sessionPrompts } from '../api/client.ts'
import { type SignedIn, sessionQuery } from '../api/session.ts'
import { Failed, Waiting } from '../components/states.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { StepUp } from './step-up.tsx'

// Few people see these, and each of them once.
const Invite = lazyRouteComponent(() => import('./invite.tsx'), 'Invite')
const Enrol = lazyRouteComponent(() => import('./enrol.tsx'), 'Enrol')
const OidcReturn = lazyRouteComponent(() => import('./oidc/return.tsx'), 'OidcReturn')

export function Root() {
  const session = useQuery(sessionQuery)
  const client = useQueryClient()
  const { pathname } = useLocation()
  const [ended, setEnded] = useState(false)
  const shown = session.data

  /** Calls that wait for the sign-in. */
  const waiting = useRef<((isSame: boolean) => void)[]>([])
  useEffect(() => {
    sessionPrompts.signIn = () =>
      new Promise((resolve) => {
        waiting.current.push(resolve)
        setEnded(true)
      })
    return () => {
      sessionPrompts.signIn = async () => false
    }
  }, [])

  const enter = (next: SignedIn) => {
    const isOther = shown?.operator.operator_id !== next.operator.operator_id
    // What one operator has seen is not shown to another.
    if (isOther) client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
    client.setQueryData(sessionQuery.queryKey, next)
    // Calls that wait would be refused: they wait until the second factor is set up.
    if (next.must_enrol) return
    setEnded(false)
    for (const resolve of waiting.current.splice(0)) resolve(!isOther)
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
  if (session.isPending) return <Waiting onRetry={() => void session.refetch()}>{null}</Waiting>
  if (shown === undefined) {
    return <Failed error={session.error} onRetry={() => void session.refetch()} />
  }
  if (shown === null) return <SignIn onSignedIn={enter} />
  const enrol = shown.must_enrol && (
    <Suspense>
      <Enrol onEnrolled={enter} signedIn={shown} />
    </Suspense>
  )
  if (enrol && !ended) {
    return (
      <>
        {enrol}
        <StepUp signedIn={shown} />
      </>
    )
  }
  return (
    <>
      <Shell key={shown.operator.operator_id} signedIn={shown} />
      <StepUp signedIn={shown} />
      <Dialog.Root open={ended}>
        <Dialog.Portal>
          <Dialog.Content
            aria-describedby={undefined}
            aria-label="Sign in"
            aria-labelledby={undefined}
            className={`fixed inset-0 ${enrol ? 'z-50' : 'z-60'} overflow-auto bg-page outline-none`}
          >
            {enrol || <SignIn email={shown.operator.email} onSignedIn={enter} />}
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
    </>
  )
}
