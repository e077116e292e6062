/** The editor of a draft: form or JSON, changes, thresholds, its backtest, and publishing it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { findChanges } from '#shared/core/policies/policy-changes.ts'
import { api, ok } from '../../../api/client.ts'
import { Badge } from '../../../components/badge.tsx'
import { Button } from '../../../components/button.tsx'
import { CodeEditor } from '../../../components/editor/code-editor.tsx'
import { Input } from '../../../components/field.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Refused, Skeleton } from '../../../components/states.tsx'
import { Tabs } from '../../../components/tabs.tsx'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { useMay } from '../../../shell/operator.ts'
import { BacktestPanel } from '../backtest-panel.tsx'
import { ChangeList } from '../changes.tsx'
import { PolicyForm } from '../form/policy-form.tsx'
import { fitsForm, parseDocument, toText } from '../policy-document.ts'
import { toFaults, useCheck } from './check-draft.ts'
import { Publish } from './publish.tsx'
import type { Draft, SaveState, StoredDraft } from './use-draft.ts'

const ThresholdPicker = lazy(() =>
  import('../picker/threshold-picker.tsx').then((file) => ({ default: file.ThresholdPicker })),
)

export function DraftEditor({
  tenant,
  stored,
  draft,
  saved,
  inForce,
  onChange,
  onDiscard,
  onPublished,
}: {
  tenant: string
  /** The draft as the server has it, and as it is typed. */
  stored: StoredDraft
  draft: Draft
  saved: SaveState
  inForce: { version: number; document: unknown }
  onChange: (draft: Draft) => void
  onDiscard: () => void
  onPublished: () => void
}) {
  const check = useCheck(tenant, draft.text, true)
  const document = useMemo(() => parseDocument(draft.text), [draft.text])
  const base = useMemo(() => parseDocument(toText(inForce.document)), [inForce.document])
  const changes = useMemo(() => findChanges(base, document), [base, document])
  const faults = useMemo(() => toFaults(draft.text, check.errors), [draft.text, check.errors])
  /** The part of the form that is being changed: what is wrong with it is said once it was left. */
  const [editing, setEditing] = useState<string | null>(null)
  const said = check.errors.filter(({ path }) => editing === null || !path.startsWith(editing))
  const setText = (text: string) => onChange({ ...draft, text })
  const errorOf = (path: string) => check.errors.find((error) => error.path === path)?.message
  const valid = check.state === 'valid' && changes.length > 0
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {draft.base_version !== inForce.version && (
        <Conflict
          draft={draft}
          inForce={inForce.version}
          onDiscard={onDiscard}
          onRebase={() => onChange({ ...draft, base_version: inForce.version })}
        />
      )}
      <Panel
        action={
          <div className="flex flex-wrap items-center gap-2">
            <Saved state={saved} />
            <CheckState count={said.length} state={check.state} />
            <Button onClick={onDiscard}>Discard</Button>
            <ShadowButton document={document} tenant={tenant} valid={valid} />
            <Publish
              changes={changes.length}
              onPublished={onPublished}
              stored={stored}
              tenant={tenant}
              valid={valid && saved === 'saved'}
            />
          </div>
        }
        title={`Draft from version ${draft.base_version}`}
      >
        {check.state === 'failed' && (
          <div className="p-3">
            <Refused error={check.error} />
          </div>
        )}
        <div className="grid gap-1 border-line border-b px-4 py-3">
          <Input
            hint={`Begun by ${stored.created_by}, last changed by ${stored.updated_by}.`}
            label="What this draft is for"
            maxLength={500}
            onChange={({ target }) => onChange({ ...draft, comment: target.value })}
            value={draft.comment}
          />
        </div>
        <div className="px-4 pt-1 pb-4">
          <Tabs
            name="mode"
            tabs={[
              {
                id: 'form',
                label: 'Weights and thresholds',
                content:
                  fitsForm(document) && base !== null ? (
                    <PolicyForm
                      base={base}
                      document={document}
                      errorOf={errorOf}
                      onChange={(next) => setText(toText(next))}
                      onEditing={setEditing}
                      tenant={tenant}
                    />
                  ) : (
                    <Empty title="The JSON cannot be shown as a form">
                      Correct it in the tab JSON first.
                    </Empty>
                  ),
              },
              {
                id: 'json',
                label: 'JSON',
                content: (
                  <CodeEditor
                    className="h-[32rem] rounded-md border border-line"
                    faults={faults}
                    label="Policy as JSON"
                    language="json"
                    onChange={setText}
                    value={draft.text}
                  />
                ),
              },
              {
                id: 'changes',
                label: `Changes (${changes.length})`,
                content: (
                  <ChangeList
                    after={draft.text}
                    before={toText(inForce.document)}
                    changes={changes}
                  />
                ),
              },
            ]}
          />
          {check.state === 'invalid' && said.length > 0 && (
            <div role="alert">
              <ul aria-label="What is not valid" className="mt-3 grid gap-1 text-bad">
                {said.slice(0, 10).map(({ path, message }) => (
                  <li key={`${path} ${message}`}>
                    <code className="font-mono text-sm">{path}</code> {message}
                  </li>
                ))}
              </ul>
            </div>
          )}
        </div>
      </Panel>
      {fitsForm(document) && base !== null && (
        <Suspense fallback={<Skeleton className="h-96" />}>
          <ThresholdPicker
            document={document}
            inForce={base.thresholds}
            onChange={(next) => setText(toText(next))}
            tenant={tenant}
          />
        </Suspense>
      )}
      <BacktestPanel tenant={tenant} text={draft.text} valid={check.state === 'valid'} />
    </div>
  )
}

const savedTexts: Record<SaveState, string> = {
  saved: 'Saved',
  saving: 'Saving',
  failed: 'Not saved',
  conflict: 'Not saved',
}

function Saved({ state }: { state: SaveState }) {
  const isBad = state === 'failed' || state === 'conflict'
  return (
    <span aria-live="polite" className={isBad ? 'text-bad text-sm' : 'text-muted text-sm'}>
      {savedTexts[state]}
    </span>
  )
}

function CheckState({ state, count }: { state: string; count: number }) {
  return (
    <span aria-live="polite">
      {state === 'valid' && <Badge tone="good">valid</Badge>}
      {state === 'checking' && <Badge>checking</Badge>}
      {state === 'failed' && <Badge tone="bad">not checked</Badge>}
      {state === 'invalid' && count === 0 && <Badge>not complete</Badge>}
      {state === 'invalid' && count > 0 && (
        <Badge tone="bad">
          {count} {count === 1 ? 'error' : 'errors'}
        </Badge>
      )}
    </span>
  )
}

function Conflict({
  draft,
  inForce,
  onRebase,
  onDiscard,
}: {
  draft: Draft
  inForce: number
  onRebase: () => void
  onDiscard: () => void
}) {
  return (
    <div
      className="flex flex-wrap items-center gap-3 rounded-lg border border-warn bg-warn-soft px-4 py-2.5 text-warn"
      role="alert"
    >
      <p className="flex-1">
        Version {inForce} is in force; this draft began from version {draft.base_version}. The tab
        Changes compares with version {inForce}: publishing would undo what differs there.
      </p>
      <Button onClick={onRebase} small>
        I have compared: continue on version {inForce}
      </Button>
      <Button onClick={onDiscard} small>
        Discard the draft
      </Button>
    </div>
  )
}

function ShadowButton({
  tenant,
  document,
  valid,
}: {
  tenant: string
  document: unknown
  valid: boolean
}) {
  const may = useMay('engineer')
  const client = useQueryClient()
  const set = useMutation({
    mutationFn: () =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/policy/shadow', {
          params: { path: { tenant_id: tenant } },
          body: document,
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['shadow', tenant] })
      toast('The draft decides as the shadow policy, and raises no alerts. See the tab Shadow.')
    },
    onError: (error) => toastFailure(`The shadow was not set: ${error.message}`),
  })
  if (!may) return null
  return (
    <Button busy={set.isPending} disabled={!valid} onClick={() => set.mutate()}>
      Run as shadow
    </Button>
  )
}
