/**
 * Asks for the password, a code or the identity provider again before something that cannot be
 * undone. Any call that is answered `step_up_required` opens it; the call is then repeated.
 */
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { sessionPrompts } from '../api/client.ts'
import { type SignedIn, sessionQuery, stepUp } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions } from '../components/dialog.tsx'
import { Input } from '../components/field.tsx'
import { Refused } from '../components/states.tsx'
import { openProvider } from './oidc/attempt.ts'

type Waiting = { answer: Promise<boolean>; settle: (proved: boolean) => void }

export function StepUp({ signedIn: { operator, step_up_by: ways } }: { signedIn: SignedIn }) {
  const [open, setOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [waits, setWaits] = useState(false)
  const waiting = useRef<Waiting | null>(null)
  const client = useQueryClient()
  const byCode = ways.includes('code')
  const typed = byCode || ways.includes('password')

  useEffect(() => {
    sessionPrompts.stepUp = () => {
      // Calls that need it at the same time share one dialog.
      if (waiting.current !== null) return waiting.current.answer
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiting.current = { answer: promise, settle: resolve }
      setError(null)
      setWaits(false)
      setOpen(true)
      return promise
    }
    return () => {
      sessionPrompts.stepUp = async () => false
      waiting.current?.settle(false)
      waiting.current = null
    }
  }, [])

  const close = (proved: boolean) => {
    setOpen(false)
    waiting.current?.settle(proved)
    waiting.current = null
  }
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const proof = String(new FormData(event.currentTarget).get('proof') ?? '')
    setBusy(true)
    setError(null)
    try {
      await stepUp(byCode ? { code: proof.replaceAll(' ', '') } : { password: proof })
      close(true)
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }

  const askProvider = async () => {
    setError(null)
    setWaits(true)
    try {
      await openProvider('up')
      void client.invalidateQueries({ queryKey: sessionQuery.queryKey, exact: true })
      close(true)
    } catch (caught) {
      setError(caught)
      setWaits(false)
    }
  }

  return (
    <Dialog
      description="This action needs it again. It then holds for ten minutes."
      onClose={() => close(false)}
      open={open}
      title="Confirm that it is you"
    >
      <form className="grid gap-4" onSubmit={(event) => void submit(event)}>
        <input autoComplete="username" hidden name="email" readOnly value={operator.email} />
        {byCode && (
          <Input
            autoComplete="one-time-code"
            autoFocus
            hint="From your authenticator app."
            label="Code"
            mono
            name="proof"
            required
          />
        )}
        {typed && !byCode && (
          <Input
            autoComplete="current-password"
            autoFocus
            label="Password"
            name="proof"
            required
            type="password"
          />
        )}
        {waits && <p className="text-muted">Sign in again in the window that has opened.</p>}
        {ways.length === 0 && (
          <p className="text-muted">
            This session cannot do that: sign out, and in again through single sign-on. Within ten
            minutes you can then set up an authenticator app, whose codes confirm from then on.
          </p>
        )}
        <Refused error={error} />
        <DialogActions>
          <Button onClick={() => close(false)}>Cancel</Button>
          {ways.includes('oidc') && (
            <Button look={typed ? 'plain' : 'primary'} onClick={() => void askProvider()}>
              Confirm with single sign-on
            </Button>
          )}
          {typed && (
            <Button busy={busy} look="primary" type="submit">
              Confirm
            </Button>
          )}
        </DialogActions>
      </form>
    </Dialog>
  )
}
