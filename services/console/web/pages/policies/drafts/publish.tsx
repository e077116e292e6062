/** Publishing a draft, or an older version again: with its reason, or as a proposal. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Checkbox, Textarea } from '../../../components/field.tsx'
import { Refused } from '../../../components/states.tsx'
import { toast } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { useFourEyes } from '../../proposals/proposals.ts'
import { Propose } from '../../proposals/propose.tsx'
import { Judged } from '../backtest-panel.tsx'
import { type Report, useBacktest } from '../backtest-run.ts'
import { OutcomeMoves } from '../known-outcomes.tsx'
import type { StoredDraft } from './use-draft.ts'

type Published = AnswerOf<'/admin/v1/tenants/{tenant_id}/policy', 'put'>

export function Publish({
  tenant,
  stored,
  valid,
  changes,
  onPublished,
}: {
  tenant: string
  stored: StoredDraft
  /** Valid, different from what is in force, and saved. */
  valid: boolean
  changes: number
  onPublished: () => void
}) {
  const may = useMay('admin')
  const backtest = useBacktest(tenant)
  const [open, setOpen] = useState(false)
  const [anyway, setAnyway] = useState(false)
  const [reason, setReason] = useState('')
  const client = useQueryClient()
  const fourEyes = useFourEyes(tenant)
  const tested = backtest?.report != null && backtest.request.text === stored.text
  const publish = usePublish(tenant, () => {
    setOpen(false)
    onPublished()
  })
  if (!may) return null
  const isConflict = publish.error instanceof ApiProblem && publish.error.code === 'policy_conflict'
  const close = () => {
    setOpen(false)
    publish.reset()
    if (isConflict) void client.invalidateQueries({ queryKey: ['policy', tenant] })
  }
  const isReady = (tested || anyway) && reason.trim() !== ''
  return (
    <>
      <Button disabled={!valid} look="primary" onClick={() => setOpen(true)}>
        Publish
      </Button>
      <Dialog
        description={`${changes} ${changes === 1 ? 'change' : 'changes'} against version ${stored.base_version}. Every edge scores by the new version when this is done.`}
        locked={publish.isPending}
        onClose={close}
        open={open}
        title="Publish this policy"
      >
        {tested ? (
          <>
            <p>{summarize(backtest.report!)}</p>
            <Judged rows={backtest.report!.by_disposition} />
            <OutcomeMoves moves={backtest.report!.outcomes} />
          </>
        ) : (
          <Checkbox
            checked={anyway}
            hint="Its backtest would show for which sessions it changes something."
            label="Publish this draft without a backtest"
            onChange={({ target }) => setAnyway(target.checked)}
          />
        )}
        <ReasonField onChange={setReason} value={reason} />
        {isConflict && <Refused error={publish.error} />}
        {isConflict && (
          <p>
            Nothing was overwritten. Close this dialog to compare your draft with the new version.
          </p>
        )}
        {isConflict ? (
          <DialogActions>
            <Button onClick={close}>Compare</Button>
          </DialogActions>
        ) : (
          <Propose
            body={{ kind: 'policy', draft_id: stored.draft_id }}
            disabled={!isReady}
            error={publish.error}
            isNeeded={fourEyes?.enabled === true}
            onCancel={close}
            pending={publish.isPending}
            reason={reason}
            tenant={tenant}
          >
            <Button
              busy={publish.isPending}
              disabled={!isReady}
              look="primary"
              onClick={() =>
                publish.mutate(() =>
                  ok(
                    api.POST('/admin/v1/tenants/{tenant_id}/drafts/{draft_id}/publish', {
                      params: { path: { tenant_id: tenant, draft_id: stored.draft_id } },
                      body: { reason, revision: stored.revision },
                    }),
                  ),
                )
              }
            >
              Publish
            </Button>
          </Propose>
        )}
      </Dialog>
    </>
  )
}

export function ReasonField({
  value,
  onChange,
}: {
  value: string
  onChange: (reason: string) => void
}) {
  return (
    <Textarea
      hint="Shown with the version."
      label="Reason"
      maxLength={500}
      onChange={({ target }) => onChange(target.value)}
      required
      rows={2}
      value={value}
    />
  )
}

const toCount = (value: number) => value.toLocaleString('en')

const summarize = ({ changes, events }: Report): string =>
  `The backtest of this draft over ${toCount(events)} events: ${toCount(changes.new)} sessions ` +
  `get an alert, ${toCount(changes.gone)} lose theirs, ${toCount(changes.stricter)} become ` +
  `stricter, ${toCount(changes.milder)} milder.`

/** Puts a document in force: the call is refused when another version is by now. */
export function usePublish(tenant: string, onDone: () => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (call: () => Promise<Published>) => call(),
    onSuccess: async ({ version, confirmed_edges: edges }) => {
      onDone()
      await Promise.all(
        [
          ['policy', tenant],
          ['signals', tenant],
          ['tenant', tenant],
        ].map((queryKey) => client.invalidateQueries({ queryKey })),
      )
      toast(
        `Version ${version} is in force on ${edges.length} ${edges.length === 1 ? 'edge' : 'edges'}.`,
      )
    },
  })
}
