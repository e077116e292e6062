/**
 * The sign-in page: through the identity provider where there is one, and by email and password,
 * with a code where the account has one.
 */
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { ApiProblem } from '../api/client.ts'
import { type SignedIn, signIn, waysQuery } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Input } from '../components/field.tsx'
import { Refused, Skeleton } from '../components/states.tsx'
import { OidcSignIn, Or } from './oidc/sign-in.tsx'
import { SignedOutLayout } from './signed-out-layout.tsx'

/** @param email whose session has ended, when one has */
export function SignIn({
  email,
  onSignedIn,
}: {
  email?: string
  onSignedIn: (signedIn: SignedIn) => void
}) {
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const [needsCode, setNeedsCode] = useState(false)
  const ways = useQuery(waysQuery)
  const code = useRef<HTMLInputElement>(null)

  useEffect(() => {
    if (needsCode) code.current?.focus()
  }, [needsCode])

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (name: string) => String(form.get(name) ?? '').trim()
    setBusy(true)
    setError(null)
    try {
      onSignedIn(
        await signIn({
          email: text('email'),
          // Passwords are never changed, not even at their ends.
          password: String(form.get('password') ?? ''),
          ...(needsCode ? { code: text('code').replaceAll(' ', '') } : {}),
        }),
      )
    } catch (caught) {
      if (caught instanceof ApiProblem && caught.code === 'totp_required') {
        setNeedsCode(true)
        if (needsCode) setError(caught)
      } else setError(caught)
    } finally {
      setBusy(false)
    }
  }

  const byPassword = (
    <form className="grid gap-4" onSubmit={(event) => void submit(event)}>
      <Input
        autoComplete="username"
        autoFocus={!email}
        defaultValue={email}
        label="Email"
        name="email"
        required
        type="email"
      />
      <Input
        autoComplete="current-password"
        autoFocus={Boolean(email)}
        label="Password"
        name="password"
        required
        type="password"
      />
      {needsCode && (
        <Input
          autoComplete="one-time-code"
          hint="From your authenticator app, or one of your recovery codes."
          label="Code"
          mono
          name="code"
          ref={code}
          required
        />
      )}
      <Refused error={error} />
      <Button busy={busy} look="primary" type="submit">
        Sign in
      </Button>
    </form>
  )
  return (
    <SignedOutLayout title="Sign in">
      {email && (
        <p className="-mt-2 text-muted">
          Your session has ended. Sign in to go on where you were; nothing is lost.
        </p>
      )}
      {ways.isPending && <Skeleton className="h-36" />}
      {ways.data?.oidc && (
        <OidcSignIn
          only={!ways.data.passwords}
          issuer={ways.data.oidc.issuer}
          onSignedIn={onSignedIn}
          stays={Boolean(email)}
        />
      )}
      {ways.data?.passwords === false ? (
        <p className="text-muted text-sm">
          Passwords are switched off here. When the identity provider cannot be used, an
          administrator makes a link on the machine: <code>di operators reset EMAIL</code>.
        </p>
      ) : (
        !ways.isPending && (
          <>
            {ways.data?.oidc && <Or />}
            {byPassword}
          </>
        )
      )}
    </SignedOutLayout>
  )
}
