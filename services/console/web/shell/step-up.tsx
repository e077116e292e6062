/**
 * Asks for the password or a code again before something that cannot be undone. Any call that is
 * answered `step_up_required` opens it; the call is then repeated.
 */
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { demands } from '../api/client.ts'
import { type Operator, stepUp } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions } from '../components/dialog.tsx'
import { Input } from '../components/field.tsx'
import { Refused } from '../components/states.tsx'

type Waiting = { answer: Promise<boolean>; settle: (proved: boolean) => void }

export function StepUp({ operator }: { operator: Operator }) {
  const [open, setOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const waiting = useRef<Waiting | null>(null)

  useEffect(() => {
    demands.stepUp = () => {
      // Calls that need it at the same time share one dialog.
      if (waiting.current !== null) return waiting.current.answer
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiting.current = { answer: promise, settle: resolve }
      setError(null)
      setOpen(true)
      return promise
    }
    return () => {
      demands.stepUp = async () => false
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
      await stepUp(operator.totp ? { code: proof.replaceAll(' ', '') } : { password: proof })
      close(true)
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
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
        {operator.totp ? (
          <Input
            autoComplete="one-time-code"
            autoFocus
            hint="From your authenticator app."
            label="Code"
            mono
            name="proof"
            required
          />
        ) : (
          <Input
            autoComplete="current-password"
            autoFocus
            label="Password"
            name="proof"
            required
            type="password"
          />
        )}
        <Refused error={error} />
        <DialogActions>
          <Button onClick={() => close(false)}>Cancel</Button>
          <Button busy={busy} look="primary" type="submit">
            Confirm
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
