/** The editor of a draft: form or JSON, changes, thresholds, its backtest, and publishing it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { findChanges } from '#shared/core/policies/policy-changes.ts'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { CodeEditor } from '../../components/editor/code-editor.tsx'
import { Checkbox } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Refused, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { BacktestPanel, Judged } from './backtest-panel.tsx'
import { type Report, useBacktest } from './backtest-run.ts'
import { ChangeList } from './changes.tsx'
import { OutcomeMoves } from './known-outcomes.tsx'
import { fitsForm, parseDocument, toText } from './policy-document.ts'
import { PolicyForm } from './policy-form.tsx'
import { type Draft, toFaults, useCheck } from './use-draft.ts'

const ThresholdPicker = lazy(() =>
  import('./picker/threshold-picker.tsx').then((file) => ({ default: file.ThresholdPicker })),
)

export function DraftEditor({
  tenant,
  draft,
  inForce,
  onChange,
  onDiscard,
  onPublished,
}: {
  tenant: string
  draft: Draft
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
  const setText = (text: string) => onChange({ ...draft, text })
  const errorOf = (path: string) => check.errors.find((error) => error.path === path)?.message
  const valid = check.state === 'valid' && changes.length > 0
  return (
    <div className="grid gap-4">
      {draft.baseVersion !== inForce.version && (
        <Conflict
          draft={draft}
          inForce={inForce.version}
          onDiscard={onDiscard}
          onRebase={() => onChange({ ...draft, baseVersion: inForce.version })}
        />
      )}
      <Panel
        action={
          <div className="flex flex-wrap items-center gap-2">
            <CheckState count={check.errors.length} state={check.state} />
            <Button onClick={onDiscard}>Discard</Button>
            <ShadowButton document={document} tenant={tenant} valid={valid} />
            <Publish
              changes={changes.length}
              draft={draft}
              onPublished={onPublished}
              tenant={tenant}
              valid={valid}
            />
          </div>
        }
        title={`Draft from version ${draft.baseVersion}`}
      >
        {check.state === 'failed' && (
          <div className="p-3">
            <Refused error={check.error} />
          </div>
        )}
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
          {check.state === 'invalid' && (
            <div role="alert">
              <ul aria-label="What is not valid" className="mt-3 grid gap-1 text-bad">
                {check.errors.slice(0, 10).map(({ path, message }) => (
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

function CheckState({ state, count }: { state: string; count: number }) {
  return (
    <span aria-live="polite">
      {state === 'valid' && <Badge tone="good">valid</Badge>}
      {state === 'checking' && <Badge>checking</Badge>}
      {state === 'failed' && <Badge tone="bad">not checked</Badge>}
      {state === 'invalid' && (
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
        Version {inForce} is in force; this draft began from version {draft.baseVersion}. The tab
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
    onError: (error) => toast(`The shadow was not set: ${error.message}`),
  })
  if (!may) return null
  return (
    <Button busy={set.isPending} disabled={!valid} onClick={() => set.mutate()}>
      Run as shadow
    </Button>
  )
}

function Publish({
  tenant,
  draft,
  valid,
  changes,
  onPublished,
}: {
  tenant: string
  draft: Draft
  valid: boolean
  changes: number
  onPublished: () => void
}) {
  const may = useMay('admin')
  const backtest = useBacktest(tenant)
  const [open, setOpen] = useState(false)
  const [anyway, setAnyway] = useState(false)
  const client = useQueryClient()
  const tested = backtest?.report != null && backtest.request.text === draft.text
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
  return (
    <>
      <Button disabled={!valid} look="primary" onClick={() => setOpen(true)}>
        Publish
      </Button>
      <Dialog
        description={`${changes} ${changes === 1 ? 'change' : 'changes'} against version ${draft.baseVersion}. Every edge scores by the new version when this is done.`}
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
        <Refused error={publish.error} />
        {isConflict && (
          <p>
            Nothing was overwritten. Close this dialog to compare your draft with the new version.
          </p>
        )}
        <DialogActions>
          <Button disabled={publish.isPending} onClick={close}>
            {isConflict ? 'Compare' : 'Cancel'}
          </Button>
          {!isConflict && (
            <Button
              busy={publish.isPending}
              disabled={!tested && !anyway}
              look="primary"
              onClick={() =>
                publish.mutate({
                  document: parseDocument(draft.text),
                  ifVersion: draft.baseVersion,
                })
              }
            >
              Publish
            </Button>
          )}
        </DialogActions>
      </Dialog>
    </>
  )
}

const summarize = ({ changes, events }: Report): string =>
  `The backtest of this draft, sessions: ${changes.new} new, ${changes.gone} gone, ` +
  `${changes.stricter} stricter, ${changes.milder} milder, of ` +
  `${events.toLocaleString('en')} events.`

/** Puts a document in force unless another version is by now. */
export function usePublish(tenant: string, onDone: () => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ document, ifVersion }: { document: unknown; ifVersion: number }) =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/policy', {
          params: { path: { tenant_id: tenant }, query: { if_version: ifVersion } },
          body: document,
        }),
      ),
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
