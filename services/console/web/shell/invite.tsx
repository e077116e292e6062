/**
 * Accepts an invitation: the token is behind the `#` of the address, which a browser never sends,
 * so that no log and no proxy has it. `?tenant=` names the tenant whose overview comes next.
 */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { ApiProblem, prefix } from '../api/client.ts'
import { acceptInvitation, findInvitation, type SignedIn, waysQuery } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Input } from '../components/field.tsx'
import { Loaded, Refused, Skeleton } from '../components/states.tsx'
import { OidcSignIn, Or } from './oidc/sign-in.tsx'
import { passwordCharactersMin, passwordHint } from './password-rule.ts'
import { SignedOutLayout } from './signed-out-layout.tsx'

/** A tenant's id: nothing that leads elsewhere. */
const slug = /^[a-z0-9][a-z0-9-]*$/

export function Invite({ onSignedIn }: { onSignedIn: (signedIn: SignedIn) => void }) {
  const token = location.hash.slice(1)
  const tenant = new URLSearchParams(location.search).get('tenant') ?? ''
  const navigate = useNavigate()
  const invitation = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => findInvitation(token),
    enabled: token !== '',
    retry: false,
  })
  const ways = useQuery(waysQuery)
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    setError(null)
    try {
      const signedIn = await acceptInvitation(token, {
        name: String(form.get('name') ?? '').trim(),
        password: String(form.get('password') ?? ''),
      })
      const href = slug.test(tenant) ? `/t/${tenant}/overview` : '/'
      await navigate({ href, replace: true })
      onSignedIn(signedIn)
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }
  const both = {
    ...invitation,
    data: invitation.data && ways.data && ([invitation.data, ways.data] as const),
    error: invitation.error ?? ways.error,
  }
  const problem = error instanceof ApiProblem ? error : null

  if (token === '' || (invitation.error instanceof ApiProblem && invitation.error.status === 404)) {
    return (
      <SignedOutLayout title="This invitation cannot be used">
        <p className="text-muted">
          It was used already, has run out, or the link is not complete. An administrator can invite
          you again.
        </p>
        <a href={`${prefix}/`}>Go to sign in</a>
      </SignedOutLayout>
    )
  }
  return (
    <SignedOutLayout title="Welcome">
      <Loaded query={both} skeleton={<Skeleton className="h-56" />}>
        {([{ email, role, reset }, { oidc, passwords }]) => (
          <>
            <p className="-mt-2 text-muted">
              {reset ? 'Choose a new password for ' : 'You are invited as '}
              {!reset && <strong className="text-text">{role}</strong>}
              {!reset && ' with the email address '}
              <strong className="text-text">{email}</strong>.
            </p>
            {reset && !passwords && (
              <p className="text-muted text-sm">
                Passwords are switched off here. This one lets you confirm what you do until you
                sign out; next time use single sign-on.
              </p>
            )}
            {oidc !== null && !reset && (
              <OidcSignIn
                only={!passwords}
                issuer={oidc.issuer}
                onSignedIn={onSignedIn}
                stays={false}
              />
            )}
            {oidc !== null && !reset && passwords && <Or />}
            {(passwords || reset) && (
              <form className="grid gap-4" onSubmit={(event) => void submit(event)}>
                <input autoComplete="username" hidden name="email" readOnly value={email} />
                {!reset && (
                  <Input
                    autoComplete="name"
                    autoFocus
                    error={problem?.of('name')}
                    label="Your name"
                    name="name"
                    required
                  />
                )}
                <Input
                  autoComplete="new-password"
                  error={problem?.of('password')}
                  hint={passwordHint}
                  label="Password"
                  minLength={passwordCharactersMin}
                  name="password"
                  required
                  type="password"
                />
                {(problem === null || problem.errors.length === 0) && <Refused error={error} />}
                <Button busy={busy} look="primary" type="submit">
                  {reset ? 'Set the password' : 'Create the account'}
                </Button>
              </form>
            )}
          </>
        )}
      </Loaded>
    </SignedOutLayout>
  )
}
