/** The sign-in page: email and password, then a code where the account has one. */
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiProblem } from '../api/client.ts'
import { type SignedIn, signIn } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Input } from '../components/field.tsx'
import { Refused } from '../components/states.tsx'

/** The frame of the pages that need no session. */
export function Doorway({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Device intelligence`
  }, [title])
  return (
    <main className="grid min-h-full place-items-center bg-panel p-4">
      <div className="grid w-full max-w-sm gap-5">
        <div className="flex items-center gap-2.5">
          <Mark />
          <span className="font-semibold text-lg">Device intelligence</span>
        </div>
        <div className="grid gap-4 rounded-xl border border-line bg-raised p-6 shadow-sm">
          <h1 className="font-semibold text-xl">{title}</h1>
          {children}
        </div>
      </div>
    </main>
  )
}

export function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg aria-hidden="true" className="shrink-0" height={size} viewBox="0 0 32 32" width={size}>
      <rect className="fill-accent" height="32" rx="8" width="32" />
      <g fill="none" stroke="#fff" strokeLinecap="round" strokeLinejoin="round" strokeWidth="2.2">
        <path d="M16 6l8 3v6c0 5.5-3.4 9.2-8 11-4.6-1.8-8-5.5-8-11V9z" />
        <path d="M12.5 15.8l2.6 2.6 4.6-4.8" />
      </g>
    </svg>
  )
}

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

  return (
    <Doorway title="Sign in">
      {email && (
        <p className="-mt-2 text-muted">
          Your session has ended. Sign in to go on where you were; nothing is lost.
        </p>
      )}
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
    </Doorway>
  )
}
