/** The steps of setting up a second factor: the secret, a first code, and the recovery codes. */
import { useMutation } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { DialogActions } from '../../components/dialog.tsx'
import { Input } from '../../components/field.tsx'
import { CodeBlock, CopyLine } from '../../components/secret.tsx'
import { Refused } from '../../components/states.tsx'
import { QrCode } from './qr-code.tsx'

export type Setup = AnswerOf<'/admin/v1/session/totp', 'post'>

export const beginSetup = () => ok(api.POST('/admin/v1/session/totp', { params: {} }))

export const secretNote =
  'Scan this with an authenticator app, or type the secret into it. Then enter the code that it shows.'
export const codesNote =
  'Each of these codes signs you in once when you do not have the app. They are shown only now: keep them where you keep passwords.'

/** Confirms the first code; its answer has the recovery codes. */
export const useConfirmSetup = () =>
  useMutation({
    mutationFn: (code: string) =>
      ok(api.POST('/admin/v1/session/totp/confirm', { params: {}, body: { code } })),
  })

export function SecretStep({
  setup,
  confirm,
  onCancel,
}: {
  setup: Setup
  confirm: ReturnType<typeof useConfirmSetup>
  onCancel?: () => void
}) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const code = String(new FormData(event.currentTarget).get('code') ?? '')
    confirm.mutate(code.replaceAll(' ', ''))
  }
  return (
    <>
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
          {onCancel && <Button onClick={onCancel}>Cancel</Button>}
          <Button busy={confirm.isPending} look="primary" type="submit">
            Switch on
          </Button>
        </DialogActions>
      </form>
    </>
  )
}

export function CodesStep({ codes, onDone }: { codes: string[]; onDone: () => void }) {
  return (
    <>
      <CodeBlock code={codes.join('\n')} label="Recovery codes" />
      <DialogActions>
        <Button look="primary" onClick={onDone}>
          I have saved them
        </Button>
      </DialogActions>
    </>
  )
}
