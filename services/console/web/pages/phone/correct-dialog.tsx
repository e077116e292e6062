/** Splits an install off its phone, or joins one to it, with a reason. */
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input, Textarea } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { useChangePhones } from './changes.ts'
import type { Install } from './phones.ts'

type Wanted = { tenant: string; phoneId: string; onClose: () => void }

const texts = {
  split: {
    title: 'Split this install off',
    about:
      'It becomes a phone of its own, for what is received from now on and on every page. Its alerts in the open case of this phone leave for a case of their own; closed cases stay. You can undo it.',
    action: 'Split off',
  },
  join: {
    title: 'Join an install to this phone',
    about:
      'It counts as this phone for what is received from now on and on every page. Its alerts in the open case of its phone move to the case of this one; closed cases stay. You can undo it.',
    action: 'Join',
  },
} as const

/** @param install the one to split off; left out, the form asks for one to join */
export function CorrectDialog({
  tenant,
  phoneId,
  install,
  onClose,
}: Wanted & { install?: Install }) {
  const { correctOne } = useChangePhones(tenant)
  const [device, setDevice] = useState(install?.device_id ?? '')
  const [reason, setReason] = useState('')
  const { title, about, action } = texts[install === undefined ? 'join' : 'split']
  const save = useMutation({
    mutationFn: () =>
      correctOne({
        device_id: device,
        reason: reason.trim(),
        ...(install === undefined
          ? { phone_id: phoneId }
          : { phone_id: null, expected_phone_id: phoneId }),
      }),
    onSuccess: onClose,
  })
  const problem = save.error instanceof ApiProblem ? save.error : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog description={about} locked={save.isPending} onClose={onClose} open title={title}>
      <form className="grid gap-4" onSubmit={submit}>
        {install === undefined ? (
          <Input
            autoComplete="off"
            error={problem?.of('device_id')}
            hint="The id of a device, as on its page."
            label="Install"
            mono
            onChange={({ target }) => setDevice(target.value)}
            required
            spellCheck={false}
            value={device}
          />
        ) : (
          <p className="break-all font-mono text-sm">{toVisible(install.device_id)}</p>
        )}
        <Textarea
          error={problem?.of('reason')}
          hint="Kept with the change, for those who come after you."
          label="Reason"
          onChange={({ target }) => setReason(target.value)}
          required
          rows={3}
          value={reason}
        />
        {(problem === null || problem.errors.length === 0) && <Refused error={save.error} />}
        <DialogActions>
          <Button disabled={save.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={save.isPending} look="primary" type="submit">
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
