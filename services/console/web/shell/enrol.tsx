/**
 * For a session that may do nothing but set up a second factor: its steps in place of the pages,
 * which come once it is on.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type SignedIn, sessionQuery, signOut } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Refused } from '../components/states.tsx'
import {
  beginSetup,
  CodesStep,
  codesNote,
  SecretStep,
  secretNote,
  useConfirmSetup,
} from '../pages/account/totp-setup.tsx'
import { SignedOutLayout } from './signed-out-layout.tsx'

export function Enrol({
  signedIn: { operator },
  onEnrolled,
}: {
  signedIn: SignedIn
  onEnrolled: (signedIn: SignedIn) => void
}) {
  const client = useQueryClient()
  const start = useMutation({ mutationFn: beginSetup })
  const confirm = useConfirmSetup()
  const goOn = useMutation({
    mutationFn: () => client.fetchQuery({ ...sessionQuery, staleTime: 0 }),
    onSuccess: (present) => present !== null && onEnrolled(present),
  })
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: () => client.setQueryData(sessionQuery.queryKey, null),
  })
  const setup = start.data
  const codes = confirm.data?.recovery_codes
  if (codes !== undefined) {
    return (
      <SignedOutLayout title="Your recovery codes">
        <p className="-mt-2 text-muted">{codesNote}</p>
        <CodesStep codes={codes} onDone={() => goOn.mutate()} />
        <Refused error={goOn.error} />
      </SignedOutLayout>
    )
  }
  return (
    <SignedOutLayout title="Set up a second factor">
      <p className="-mt-2 text-muted">
        {setup === undefined
          ? 'An administrator requires it, so that a stolen password alone is not enough. You need an authenticator app, for example on your phone; the console opens once it is set up.'
          : secretNote}
      </p>
      {setup === undefined ? (
        <Button busy={start.isPending} look="primary" onClick={() => start.mutate()}>
          Set up
        </Button>
      ) : (
        <SecretStep confirm={confirm} setup={setup} />
      )}
      <Refused error={start.error ?? leave.error} />
      <p className="flex flex-wrap items-center justify-between gap-2 text-muted text-sm">
        <span className="break-all">{operator.email}</span>
        <Button busy={leave.isPending} onClick={() => leave.mutate()} small>
          Sign out
        </Button>
      </p>
    </SignedOutLayout>
  )
}
