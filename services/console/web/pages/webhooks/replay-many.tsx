/** Sends many deliveries again, after their exact number was shown. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { Button, Spinner } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Checkbox } from '../../components/field.tsx'
import { usePreferences } from '../../components/state/preferences.ts'
import { Refused } from '../../components/states.tsx'
import { MomentInput } from '../../components/time/moment-input.tsx'
import { useExact } from '../../components/time/time.tsx'
import { deliveriesKey, useRefreshWebhook } from './webhook-actions.ts'

export function ReplayMany({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const refresh = useRefreshWebhook(tenantId)
  const toExact = useExact()
  const isUtc = usePreferences().zone === 'utc'
  const [failed, setFailed] = useState(true)
  const [since, setSince] = useState('')
  const params = { path: { tenant_id: tenantId } }
  const sinceMs = since === '' ? null : Date.parse(isUtc ? `${since}Z` : since)
  const scope = sinceMs === null ? {} : { since: new Date(sinceMs).toISOString() }
  const hasScope = failed || sinceMs !== null
  const count = useQuery({
    queryKey: [...deliveriesKey(tenantId), 'count', failed, since],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/deliveries/replay-count', {
          params: { ...params, query: { ...scope, failed: failed ? 'true' : 'false' } },
        }),
      ),
    enabled: hasScope,
    staleTime: 0,
  })
  const replay = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/deliveries/replay', {
          params,
          body: { ...scope, failed },
        }),
      ),
    onSuccess: refresh,
  })
  if (replay.data !== undefined) {
    return (
      <Dialog onClose={onClose} open title="Replay deliveries">
        <p role="status">{describe(replay.data.replayed)} sent again now.</p>
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    )
  }
  const number = hasScope ? count.data?.count : undefined
  const badSince = count.error instanceof ApiProblem ? count.error.of('since') : undefined
  return (
    <Dialog
      description="Each keeps its id and its bytes, so a receiver that has it recognises the repeat. The retry schedule starts again."
      locked={replay.isPending}
      onClose={onClose}
      open
      title="Replay deliveries"
    >
      <div className="grid gap-4">
        <Checkbox
          checked={failed}
          hint="Without it delivered ones are sent again too; then a time is needed."
          label="Only failed and skipped deliveries"
          onChange={({ target }) => setFailed(target.checked)}
        />
        <MomentInput
          error={badSince}
          hint={sinceMs === null ? 'Leave empty for all.' : `From ${toExact(sinceMs)} on.`}
          label={`Created since (${isUtc ? 'UTC' : 'local time'})`}
          onChange={setSince}
          required={!failed}
          value={since}
        />
        <p aria-live="polite" className="flex min-h-5 items-center gap-2">
          {!hasScope && <span className="text-muted">Choose a time to replay all since then.</span>}
          {hasScope && count.isFetching && number === undefined && (
            <>
              <Spinner /> Counting
            </>
          )}
          {number !== undefined && (
            <span>
              <strong>{number.toLocaleString('en')}</strong>{' '}
              {number === 1 ? 'delivery' : 'deliveries'}
            </span>
          )}
        </p>
        {badSince === undefined && <Refused error={hasScope ? count.error : null} />}
        <Refused error={replay.error} />
      </div>
      <DialogActions>
        <Button disabled={replay.isPending} onClick={onClose}>
          Cancel
        </Button>
        <Button
          busy={replay.isPending}
          disabled={number === undefined || number === 0}
          look="primary"
          onClick={() => replay.mutate()}
        >
          {number === undefined || number === 0
            ? 'Replay'
            : `Replay ${number.toLocaleString('en')}`}
        </Button>
      </DialogActions>
    </Dialog>
  )
}

const describe = (replayed: number): string =>
  replayed === 1 ? '1 delivery is' : `${replayed.toLocaleString('en')} deliveries are`
