/** The button that signs in through the identity provider. */
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type SignedIn, sessionQuery } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Refused } from '../../components/states.tsx'
import { leaveForProvider, openProvider } from './attempt.ts'

/**
 * @param only whether there is no other way to sign in
 * @param stays whether a page is open below, which must not be left
 */
export function OidcSignIn({
  issuer,
  only,
  stays,
  onSignedIn,
}: {
  issuer: string
  only: boolean
  stays: boolean
  onSignedIn: (signedIn: SignedIn) => void
}) {
  const client = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const [waits, setWaits] = useState(false)
  const go = async () => {
    setError(null)
    setWaits(true)
    try {
      if (!stays) return await leaveForProvider()
      await openProvider('in')
      const signedIn = await client.fetchQuery({ ...sessionQuery, staleTime: 0 })
      if (signedIn !== null) onSignedIn(signedIn)
    } catch (caught) {
      setError(caught)
      setWaits(false)
    }
  }
  return (
    <div className="grid gap-2">
      <Button busy={waits && !stays} look={only ? 'primary' : 'plain'} onClick={() => void go()}>
        Continue with single sign-on
      </Button>
      <p className="text-muted text-sm">
        {waits && stays ? 'Sign in in the window that has opened.' : `At ${new URL(issuer).host}`}
      </p>
      <Refused error={error} />
    </div>
  )
}

/** Between the two ways to sign in. */
export const Or = () => (
  <div className="flex items-center gap-3 text-muted text-sm">
    <span aria-hidden="true" className="h-px flex-1 bg-line" />
    or
    <span aria-hidden="true" className="h-px flex-1 bg-line" />
  </div>
)
