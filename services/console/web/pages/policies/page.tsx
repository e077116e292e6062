/** Policies: versions, the editor of a draft with its backtest, suggestions, the shadow policy. */
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Loaded, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { toastFailure } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { DraftList } from './drafts/draft-list.tsx'
import { useCarried } from './drafts/use-carried.ts'
import { useAddToDraft, useCreateDraft } from './drafts/use-draft.ts'
import { suppressionParameters } from './form/suppressions.tsx'
import { addFloor, addGroup, type RuleFloor, type RuleGroup, toText } from './policy-document.ts'
import { ShadowPanel } from './shadow.tsx'
import { Versions } from './versions.tsx'

const OpenDraft = lazy(() =>
  import('./drafts/open-draft.tsx').then((file) => ({ default: file.OpenDraft })),
)
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
  const draftId = search.draft ?? ''
  const create = useCreateDraft(tenant)
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
  const addToDraft = useAddToDraft(tenant, inForce)
  const begin = (document: unknown, baseVersion: number, comment = '') =>
    create.mutate(
      { text: toText(document), base_version: baseVersion, comment },
      {
        onSuccess: ({ draft_id: draft }) =>
          change({ ...withoutSuppression, tab: 'edit', mode: '', draft }),
        onError: ({ message }) => toastFailure(`The draft was not begun: ${message}`),
      },
    )
  const edit = (document: unknown) => begin(document, inForce!.version)
  useCarried({ tenant, inForce, isIdle: create.isIdle && draftId === '', begin })

  const end = () =>
    change({
      ...withoutSuppression,
      draft: '',
      weight: '',
      tab: '',
      mode: '',
      version: '',
      against: '',
    })
  const editWithFloor = (floor: RuleFloor) =>
    addToDraft.mutate({
      add: (document) => addFloor(document, floor),
      done: 'The floor is in the draft.',
    })
  const editWithGroup = (group: RuleGroup) =>
    addToDraft.mutate({
      add: (document) => addGroup(document, group),
      done: 'The group is in the draft.',
    })

  if (inForce === undefined) {
    return (
      <Frame title="Policies">
        <Loaded query={policy} skeleton={<Skeleton className="h-[36rem]" />}>
          {() => null}
        </Loaded>
      </Frame>
    )
  }
  const startEdit = (
    <Button busy={create.isPending} look="primary" onClick={() => edit(inForce.document)}>
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
    {
      id: 'edit',
      label: draftId === '' ? 'Drafts' : 'Draft',
      content:
        draftId === '' ? (
          <DraftList
            action={mayEdit && startEdit}
            onOpen={(draft) => change({ draft, mode: '' })}
            tenant={tenant}
          />
        ) : (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-3">
            <div>
              <Button onClick={() => change({ draft: '', mode: '' })} small>
                All drafts
              </Button>
            </div>
            <Suspense fallback={<Skeleton className="h-96" />}>
              <OpenDraft
                draftId={draftId}
                inForce={inForce}
                key={draftId}
                onEnd={end}
                tenant={tenant}
              />
            </Suspense>
          </div>
        ),
    },
    ...(mayEdit
      ? [
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
      action={mayEdit && draftId === '' && startEdit}
      title="Policies"
    >
      <Tabs tabs={tabs} />
    </Frame>
  )
}
