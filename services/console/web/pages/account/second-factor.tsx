/** Switches the second factor on, with an authenticator app and recovery codes, and off. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { CodeBlock, CopyLine } from '../../components/secret.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { QrCode } from './qr-code.tsx'

type Setup = AnswerOf<'/admin/v1/session/totp', 'post'>

export function SecondFactorPanel() {
  const { operator } = useSignedIn()
  const client = useQueryClient()
  const [setup, setSetup] = useState<Setup | null>(null)
  const reload = () => client.invalidateQueries({ queryKey: sessionQuery.queryKey })
  const start = useMutation({
    mutationFn: () => ok(api.POST('/admin/v1/session/totp', { params: {} })),
    onSuccess: setSetup,
  })
  const end = useMutation({
    mutationFn: () => ok(api.DELETE('/admin/v1/session/totp', { params: {} })),
    onSuccess: async () => {
      await reload()
      toast('The second factor is off.')
    },
  })
  return (
    <Panel
      action={operator.totp ? <Badge tone="good">on</Badge> : <Badge tone="warn">off</Badge>}
      title="Second factor"
    >
      <div className="grid gap-3 p-4">
        <p className="text-muted">
          {operator.totp
            ? 'Signing in needs a code of your authenticator app, or one of your recovery codes.'
            : 'With an authenticator app, a stolen password alone is not enough to sign in.'}
        </p>
        <Refused error={start.error ?? end.error} />
        <div>
          {operator.totp ? (
            <Button busy={end.isPending} onClick={() => end.mutate()}>
              Switch off
            </Button>
          ) : (
            <Button busy={start.isPending} onClick={() => start.mutate()}>
              Set up
            </Button>
          )}
        </div>
      </div>
      {setup !== null && (
        <SetupDialog
          onClose={() => {
            setSetup(null)
            void reload()
          }}
          setup={setup}
        />
      )}
    </Panel>
  )
}

function SetupDialog({ setup, onClose }: { setup: Setup; onClose: () => void }) {
  const confirm = useMutation({
    mutationFn: (code: string) =>
      ok(api.POST('/admin/v1/session/totp/confirm', { params: {}, body: { code } })),
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const code = String(new FormData(event.currentTarget).get('code') ?? '')
    confirm.mutate(code.replaceAll(' ', ''))
  }
  if (confirm.data !== undefined) {
    return (
      <Dialog
        description="Each of these codes signs you in once when you do not have the app. They are shown only now: keep them where you keep passwords."
        locked
        onClose={onClose}
        open
        title="Your recovery codes"
      >
        <CodeBlock code={confirm.data.recovery_codes.join('\n')} label="Recovery codes" />
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            I have saved them
          </Button>
        </DialogActions>
      </Dialog>
    )
  }
  return (
    <Dialog
      description="Scan this with an authenticator app, or type the secret into it. Then enter the code that it shows."
      onClose={onClose}
      open
      title="Set up the second factor"
    >
      <div className="grid justify-items-center">
        <QrCode label="The secret as a QR code" text={setup.otpauth_url} />
      </div>
      <CopyLine label="Secret" value={setup.secret} />
      <form className="grid gap-4" onSubmit={submit}>
        <Input
          autoComplete="one-time-code"
          autoFocus
          inputMode="numeric"
          label="Code"
          mono
          name="code"
          required
        />
        <Refused error={confirm.error} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button busy={confirm.isPending} look="primary" type="submit">
            Switch on
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
