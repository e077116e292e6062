/** Until when a case waits. An alert that comes meanwhile is shown when it wakes. */
import { type FormEvent, useState } from 'react'
import { caseSnoozeDaysMax } from '#shared/core/base/limits/alerts.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Select } from '../../../components/field.tsx'
import { Refused } from '../../../components/states.tsx'
import { MomentInput } from '../../../components/time/moment-input.tsx'
import { serverNowMs } from '../../../components/time/server-clock.ts'

const hourMs = 3_600_000
const spans: readonly (readonly [text: string, ms: number])[] = [
  ['1 hour', hourMs],
  ['4 hours', 4 * hourMs],
  ['1 day', 24 * hourMs],
  ['3 days', 72 * hourMs],
  ['1 week', 168 * hourMs],
]

export function SnoozeDialog({
  busy,
  error,
  onClose,
  onSnooze,
}: {
  busy: boolean
  error: unknown
  onClose: () => void
  /** @param until ISO-8601 */
  onSnooze: (until: string) => void
}) {
  const [span, setSpan] = useState('1 day')
  const [moment, setMoment] = useState('')
  const ms = spans.find(([text]) => text === span)?.[1]
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (ms !== undefined) onSnooze(new Date(serverNowMs() + ms).toISOString())
    else if (moment !== '') onSnooze(new Date(moment).toISOString())
  }
  return (
    <Dialog
      description="The case leaves the queue and comes back by itself. Its due time stays."
      onClose={onClose}
      open
      title="Snooze this case"
    >
      <form className="grid gap-4" onSubmit={submit}>
        <Select label="For" onChange={({ target }) => setSpan(target.value)} value={span}>
          {spans.map(([text]) => (
            <option key={text} value={text}>
              {text}
            </option>
          ))}
          <option value="moment">Until a moment</option>
        </Select>
        {ms === undefined && (
          <MomentInput
            hint={`In your own time, at most ${caseSnoozeDaysMax} days from now.`}
            label="Until"
            onChange={setMoment}
            required
            value={moment}
          />
        )}
        <Refused error={error} />
        <DialogActions>
          <Button disabled={busy} onClick={onClose}>
            Cancel
          </Button>
          <Button
            busy={busy}
            disabled={ms === undefined && moment === ''}
            look="primary"
            type="submit"
          >
            Snooze
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
