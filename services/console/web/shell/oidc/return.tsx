/** Where the identity provider returns to: hands in what it sent, and goes on. */
import { useRouter } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { prefix } from '../../api/client.ts'
import type { SignedIn } from '../../api/session.ts'
import { Refused, Skeleton } from '../../components/states.tsx'
import { SignedOutLayout } from '../signed-out-layout.tsx'
import { announce, finish, type Purpose, takeReturn } from './attempt.ts'

export function OidcReturn({ onSignedIn }: { onSignedIn: (signedIn: SignedIn) => void }) {
  const { history } = useRouter()
  const [error, setError] = useState<unknown>(null)
  const [done, setDone] = useState<Purpose | null>(null)
  const begun = useRef(false)

  useEffect(() => {
    // What was sent works once.
    if (begun.current) return
    begun.current = true
    const query = location.search
    const isStepUp = new URLSearchParams(query).get('state')?.startsWith('up.') === true
    const purpose = isStepUp ? 'up' : 'in'
    const hand = async () => {
      const signedIn = await finish(purpose, query)
      announce(purpose)
      const back = takeReturn()
      if (back === null) {
        setDone(purpose)
        window.close()
        return
      }
      history.replace(back)
      onSignedIn(signedIn)
    }
    hand().catch((caught: unknown) => {
      setError(caught)
      // The code is of no more use.
      window.history.replaceState(null, '', `${prefix}/oidc`)
    })
  }, [history, onSignedIn])

  if (error !== null) {
    return (
      <SignedOutLayout title="Not signed in">
        <Refused error={error} />
        <a href={`${prefix}/`}>Go to sign in</a>
      </SignedOutLayout>
    )
  }
  if (done !== null) {
    return (
      <SignedOutLayout title={done === 'up' ? 'Confirmed' : 'You are signed in'}>
        <p className="text-muted">You can close this window and go on in the one before.</p>
      </SignedOutLayout>
    )
  }
  return (
    <SignedOutLayout title="Signing in">
      <Skeleton className="h-24" />
    </SignedOutLayout>
  )
}
