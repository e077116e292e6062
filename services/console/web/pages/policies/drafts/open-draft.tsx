/** One draft: its editor, and what happened to it on the server meanwhile. */
import { useState } from 'react'
import { findChanges } from '#shared/core/policies/policy-changes.ts'
import { Button } from '../../../components/button.tsx'
import { Panel } from '../../../components/page.tsx'
import { useLeaveGuard } from '../../../components/state/leave-guard.ts'
import { Loaded, Refused, Skeleton } from '../../../components/states.tsx'
import { toastFailure } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { ChangeList } from '../changes.tsx'
import { parseDocument, toText } from '../policy-document.ts'
import { DraftEditor } from './draft-editor.tsx'
import { useDraft, useRemoveDraft } from './use-draft.ts'

export function OpenDraft({
  tenant,
  draftId,
  inForce,
  onEnd,
}: {
  tenant: string
  draftId: string
  inForce: { version: number; document: unknown }
  /** Called when it is published, removed or closed. */
  onEnd: () => void
}) {
  const { query, stored, draft, state, error, ...act } = useDraft(tenant, draftId)
  const mayEdit = useMay('engineer')
  const remove = useRemoveDraft(tenant)
  const [ended, setEnded] = useState(false)
  useLeaveGuard(state !== 'saved' && !ended, 'Leave this page before the draft is saved?')
  const end = () => {
    setEnded(true)
    onEnd()
  }
  if (stored === undefined || draft === undefined) {
    return (
      <Loaded query={query} skeleton={<Skeleton className="h-96" />}>
        {() => null}
      </Loaded>
    )
  }
  if (!mayEdit) return <Review draft={stored} inForce={inForce} />
  const discard = () => {
    if (!confirm('Discard this draft? Others of the tenant lose it, too.')) return
    remove.mutate(draftId, {
      onSuccess: end,
      onError: ({ message }) => toastFailure(`The draft was not discarded: ${message}`),
    })
  }
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {state === 'conflict' && (
        <div
          className="flex flex-wrap items-center gap-3 rounded-lg border border-warn bg-warn-soft px-4 py-2.5 text-warn"
          role="alert"
        >
          <p className="flex-1">
            Somebody else has changed this draft since you opened it. What you typed is not saved.
          </p>
          <Button onClick={() => void act.takeTheirs()} small>
            Take theirs
          </Button>
          <Button onClick={() => void act.keepMine()} small>
            Save mine over it
          </Button>
        </div>
      )}
      {state === 'failed' && (
        <div className="flex flex-wrap items-center gap-3">
          <Refused error={error} />
          <Button onClick={act.retry}>Save again</Button>
        </div>
      )}
      <DraftEditor
        draft={draft}
        inForce={inForce}
        onChange={act.change}
        onDiscard={discard}
        onPublished={end}
        saved={state}
        stored={stored}
        tenant={tenant}
      />
    </div>
  )
}

/** A draft for those who may not edit it. */
function Review({
  draft,
  inForce,
}: {
  draft: { text: string; comment: string; created_by: string; base_version: number }
  inForce: { document: unknown }
}) {
  const changes = findChanges(inForce.document, parseDocument(draft.text))
  return (
    <Panel title={`Draft from version ${draft.base_version}, by ${draft.created_by}`}>
      <div className="grid gap-3 p-4">
        {draft.comment !== '' && <p>{draft.comment}</p>}
        <ChangeList after={draft.text} before={toText(inForce.document)} changes={changes} />
      </div>
    </Panel>
  )
}
