/**
 * Rotates the keys of a tenant: which ones, the slug typed as confirmation, what each edge
 * confirms, and the new ones. The page can be left meanwhile: the rotation goes on in the server,
 * and the new keys can be fetched for some time.
 */
import { type FormEvent, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Checkbox, Input } from '../../components/field.tsx'
import { CopyLine } from '../../components/secret.tsx'
import { Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { useFourEyes } from '../proposals/proposals.ts'
import { Propose } from '../proposals/propose.tsx'
import { type NewKeys, type Rotation, type RotationChoice, useForgetKeys } from './rotation.ts'
import { EdgeTable, toSeconds } from './rotation-panel.tsx'

const choices: [key: keyof RotationChoice, label: string, hint: string][] = [
  ['hmac', 'HMAC secret', 'Signs telemetry. Apps and servers need the new one at once.'],
  ['webhook', 'Webhook secret', 'Signs what is delivered to your receiver.'],
  ['api_key', 'Public API key', 'Reads alerts and devices over the REST API.'],
]

export function RotateKeys({
  tenantId,
  rotation,
  pending,
  error,
  onRotate,
  onClose,
}: {
  tenantId: string
  /** The latest one: once it runs, this one. */
  rotation: Rotation | null
  pending: boolean
  error: unknown
  onRotate: (choice: RotationChoice) => void
  onClose: () => void
}) {
  const [choice, setChoice] = useState<RotationChoice>({
    hmac: true,
    webhook: true,
    api_key: false,
  })
  const [typed, setTyped] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (fourEyes?.enabled !== true) onRotate(choice)
  }
  const fourEyes = useFourEyes(tenantId)
  const isReady = typed === tenantId && choices.some(([key]) => choice[key])
  return (
    <Dialog
      description="The old ones stop being valid at once: what is signed with them is refused from then on. For some tens of milliseconds, two seconds at most, requests with either are answered 401."
      locked={pending}
      onClose={onClose}
      open
      title="Rotate keys"
    >
      <form className="grid grid-cols-[minmax(0,1fr)] gap-4" onSubmit={submit}>
        <fieldset className="grid gap-3" disabled={pending}>
          <legend className="sr-only">Which keys</legend>
          {choices.map(([key, label, hint]) => (
            <Checkbox
              checked={choice[key]}
              hint={hint}
              key={key}
              label={label}
              onChange={({ target }) => setChoice({ ...choice, [key]: target.checked })}
            />
          ))}
        </fieldset>
        <Input
          autoComplete="off"
          autoFocus
          disabled={pending}
          label={`Type ${tenantId} to confirm`}
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        {pending && rotation?.state === 'running' && (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-2" role="status">
            <p>
              Waiting for the edges. It goes on when you leave this page, where you find the new
              keys.
            </p>
            <EdgeTable rotation={rotation} />
          </div>
        )}
        <Propose
          body={{ kind: 'rotation', credentials: choice }}
          disabled={!isReady}
          error={error}
          isNeeded={fourEyes?.enabled === true}
          onCancel={onClose}
          pending={pending}
          tenant={tenantId}
        >
          <Button busy={pending} disabled={!isReady} look="danger" type="submit">
            Rotate keys
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}

export function NewKeysDialog({
  keys,
  rotation,
  onClose,
}: {
  keys: NewKeys
  rotation: Rotation | null
  onClose: () => void
}) {
  const { tenant_id: tenantId } = keys
  const forget = useForgetKeys(tenantId)
  const done = rotation?.state === 'done' ? rotation : null
  return (
    <Dialog
      description={
        done?.duration_ms
          ? `In force everywhere; it took ${toSeconds(done.duration_ms)}.`
          : 'In force everywhere.'
      }
      locked
      onClose={onClose}
      open
      title={`The new keys of ${tenantId}`}
    >
      {keys.public_api_key && <CopyLine label="Public API key" value={keys.public_api_key} />}
      {keys.hmac_secret && <CopyLine label="HMAC secret" value={keys.hmac_secret} />}
      {keys.webhook_secret && <CopyLine label="Webhook secret" value={keys.webhook_secret} />}
      {done && <EdgeTable rotation={done} />}
      {done?.new_keys && (
        <p className="text-muted">
          You can come back for them until <Time at={done.new_keys.until} exact />, unless you say
          that you have saved them.
        </p>
      )}
      <Refused error={forget.error} />
      <DialogActions>
        <Button disabled={forget.isPending} onClick={onClose}>
          Later
        </Button>
        <Button
          busy={forget.isPending}
          look="primary"
          onClick={() => forget.mutate(undefined, { onSuccess: onClose })}
        >
          I have saved them
        </Button>
      </DialogActions>
    </Dialog>
  )
}
