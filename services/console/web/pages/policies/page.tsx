/** Policies: versions, the editor of a draft with its backtest, suggestions, the shadow policy. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useLeaveGuard } from '../../components/state/leave-guard.ts'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Failed, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { toast, toastFailure } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { DraftEditor } from './draft-editor.tsx'
import {
  addFloor,
  addGroup,
  type PolicyDocument,
  parseDocument,
  type RuleFloor,
  type RuleGroup,
  toText,
} from './policy-document.ts'
import { ShadowPanel } from './shadow.tsx'
import { addSuppression, readSuppression, suppressionParameters } from './suppressions.tsx'
import { type Draft, startDraft } from './use-draft.ts'
import { Versions } from './versions.tsx'

const SuggestionPanel = lazy(() =>
  import('./suggestion/suggestion-panel.tsx').then((file) => ({ default: file.SuggestionPanel })),
)

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  // A draft is of one tenant.
  return <Policies key={tenant} tenant={tenant} />
}

const withoutSuppression = Object.fromEntries(suppressionParameters.map((name) => [name, '']))

function Policies({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const mayEdit = useMay('engineer')
  const [draft, setDraft] = useState<Draft | null>(null)
  const policy = useQuery({
    queryKey: ['policy', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/policy', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
  })
  const inForce = policy.data
  const isEdited = draft !== null && draft.text !== draft.baseText
  useLeaveGuard(isEdited, 'Leave this page and lose the draft?')

  // A link may carry a suppression, which goes into a draft from the policy in force.
  useEffect(() => {
    const carried = readSuppression(search)
    if (carried === null || inForce === undefined || draft !== null || !mayEdit) return
    const document = addSuppression(inForce.document as PolicyDocument, carried)
    setDraft({ ...startDraft(inForce.version, inForce.document), text: toText(document) })
  }, [search, inForce, draft, mayEdit])

  const edit = (document: unknown) => {
    if (isEdited && !confirm('Replace the draft that you are editing?')) return
    const base = inForce!
    setDraft({ ...startDraft(base.version, base.document), text: toText(document) })
    change({ ...withoutSuppression, tab: 'edit', mode: '' })
  }
  const editWith = (add: (document: PolicyDocument) => PolicyDocument | null, done: string) => {
    const base = inForce!
    const from = draft ?? startDraft(base.version, base.document)
    const document = parseDocument(from.text)
    if (document === null) {
      toastFailure('The draft is not JSON. Correct it first.')
      return
    }
    const next = add(document)
    if (next === null) {
      toast('Not added: a signal of the rule is in a group of the draft already.')
      return
    }
    setDraft({ ...from, text: toText(next) })
    toast(done)
  }
  const editWithFloor = (floor: RuleFloor) =>
    editWith((document) => addFloor(document, floor), 'The floor is in the draft.')
  const editWithGroup = (group: RuleGroup) =>
    editWith((document) => addGroup(document, group), 'The group is in the draft.')
  const end = (tab: string) => {
    setDraft(null)
    change({ ...withoutSuppression, tab, mode: '', version: '', against: '' })
  }
  const discard = () => {
    if (!isEdited || confirm('Discard this draft?')) end('')
  }

  if (inForce === undefined) {
    return (
      <Frame title="Policies">
        {policy.error ? (
          <Panel>
            <Failed error={policy.error} onRetry={() => void policy.refetch()} />
          </Panel>
        ) : (
          <Skeleton className="h-[36rem]" />
        )}
      </Frame>
    )
  }
  const startEdit = (
    <Button look="primary" onClick={() => edit(inForce.document)}>
      Edit the policy
    </Button>
  )
  const tabs = [
    {
      id: 'versions',
      label: 'Versions',
      content: (
        <Versions inForce={inForce} onEdit={({ document }) => edit(document)} tenant={tenant} />
      ),
    },
    ...(mayEdit
      ? [
          {
            id: 'edit',
            label: isEdited ? 'Draft (edited)' : 'Draft',
            content:
              draft === null ? (
                <Panel>
                  <Empty title="There is no draft">{startEdit}</Empty>
                </Panel>
              ) : (
                <DraftEditor
                  draft={draft}
                  inForce={inForce}
                  onChange={setDraft}
                  onDiscard={discard}
                  onPublished={() => end('')}
                  tenant={tenant}
                />
              ),
          },
          {
            id: 'suggest',
            label: 'Suggest',
            content: (
              <Suspense fallback={<Skeleton className="h-80" />}>
                <SuggestionPanel
                  onDraft={edit}
                  onFloor={editWithFloor}
                  onGroup={editWithGroup}
                  tenant={tenant}
                />
              </Suspense>
            ),
          },
        ]
      : []),
    { id: 'shadow', label: 'Shadow', content: <ShadowPanel onEdit={edit} tenant={tenant} /> },
  ]
  return (
    <Frame
      about="How events are scored, and which score leads to REVIEW or BLOCK. Every version stays and can be published again."
      action={mayEdit && draft === null && search.tab !== 'edit' && startEdit}
      title="Policies"
    >
      <Tabs tabs={tabs} />
    </Frame>
  )
}
