/**
 * A draft of a tenant's policy, which the server keeps: what is typed is saved when typing pauses,
 * unless somebody else has changed the draft since.
 */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../../api/client.ts'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { useSignedIn } from '../../../shell/operator.ts'
import { type PolicyDocument, parseDocument, toText } from '../policy-document.ts'

export type StoredDraft = AnswerOf<'/admin/v1/tenants/{tenant_id}/drafts/{draft_id}', 'get'>
/** What a person changes of a draft. */
export type Draft = Pick<StoredDraft, 'text' | 'comment' | 'base_version'>

const path = '/admin/v1/tenants/{tenant_id}/drafts' as const
const onePath = `${path}/{draft_id}` as const
const pauseMs = 600
const listMost = 100

export const draftsQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['policy', tenant, 'drafts'],
    queryFn: () =>
      ok(
        api.GET(path, {
          params: { path: { tenant_id: tenant }, query: { limit: listMost } },
        }),
      ),
  })

const draftQuery = (tenant: string, draftId: string) =>
  queryOptions({
    queryKey: ['policy-draft', tenant, draftId],
    queryFn: () =>
      ok(api.GET(onePath, { params: { path: { tenant_id: tenant, draft_id: draftId } } })),
  })

/** Begins a draft on the server. */
export function useCreateDraft(tenant: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (draft: Draft) =>
      ok(api.POST(path, { params: { path: { tenant_id: tenant } }, body: draft })),
    onSuccess: (draft) => {
      client.setQueryData(draftQuery(tenant, draft.draft_id).queryKey, draft)
      void client.invalidateQueries(draftsQuery(tenant))
    },
  })
}

type Addition = {
  /** Null: it cannot be added to this document. */
  add: (document: PolicyDocument) => PolicyDocument | null
  /** What is said once it is in. */
  done: string
}

/** Adds to the person's own draft from the version in force, the latest, or begins one with it. */
export function useAddToDraft(
  tenant: string,
  inForce: { version: number; document: unknown } | undefined,
) {
  const client = useQueryClient()
  const { email } = useSignedIn().operator
  const tenantPath = { tenant_id: tenant }
  return useMutation({
    mutationFn: async ({ add }: Addition) => {
      const { version, document } = inForce!
      const { data } = await client.fetchQuery(draftsQuery(tenant))
      const own = data.find((one) => one.created_by === email && one.base_version === version)
      if (own === undefined) {
        const text = toText(toAdded(add, document as PolicyDocument))
        const body = { text, base_version: version, comment: '' }
        return ok(api.POST(path, { params: { path: tenantPath }, body }))
      }
      const params = { path: { ...tenantPath, draft_id: own.draft_id } }
      const draft = await ok(api.GET(onePath, { params }))
      const present = parseDocument(draft.text)
      if (present === null) throw new Error('The draft is not JSON. Correct it first.')
      const { comment, base_version, revision } = draft
      const text = toText(toAdded(add, present))
      return ok(api.PUT(onePath, { params, body: { text, comment, base_version, revision } }))
    },
    onSuccess: (draft, { done }) => {
      client.setQueryData(draftQuery(tenant, draft.draft_id).queryKey, draft)
      void client.invalidateQueries(draftsQuery(tenant))
      toast(done)
    },
    onError: ({ message }) => toastFailure(message),
  })
}

function toAdded(add: Addition['add'], document: PolicyDocument): PolicyDocument {
  const added = add(document)
  if (added === null) {
    throw new Error('Not added: a signal of the rule is in a group of the draft already.')
  }
  return added
}

export function useRemoveDraft(tenant: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (draftId: string) =>
      ok(api.DELETE(onePath, { params: { path: { tenant_id: tenant, draft_id: draftId } } })),
    onSettled: () => client.invalidateQueries(draftsQuery(tenant)),
  })
}

export type SaveState = 'saved' | 'saving' | 'failed' | 'conflict'

/** A draft as it is typed, and how far it is saved. */
export function useDraft(tenant: string, draftId: string) {
  const client = useQueryClient()
  const query = useQuery(draftQuery(tenant, draftId))
  const [typed, setTyped] = useState<Draft | null>(null)
  const stored = query.data
  const { queryKey } = draftQuery(tenant, draftId)
  const save = useMutation({
    mutationFn: ({ draft, revision }: { draft: Draft; revision: number }) => {
      // What is typed begins as the whole stored draft, whose other members are no input.
      const { text, comment, base_version } = draft
      return ok(
        api.PUT(onePath, {
          params: { path: { tenant_id: tenant, draft_id: draftId } },
          body: { text, comment, base_version, revision },
        }),
      )
    },
    onSuccess: (saved, { draft }) => {
      client.setQueryData(queryKey, saved)
      setTyped((now) => (now === draft ? null : now))
      void client.invalidateQueries(draftsQuery(tenant))
    },
  })
  const { mutate, isPending, error } = save
  const revision = stored?.revision
  // What failed is tried again with the next change, or by hand.
  useEffect(() => {
    if (typed === null || revision === undefined || isPending || error !== null) return
    const timer = setTimeout(() => mutate({ draft: typed, revision }), pauseMs)
    return () => clearTimeout(timer)
  }, [typed, revision, isPending, error, mutate])
  const isConflict = error instanceof ApiProblem && error.code === 'draft_changed'
  const reload = async () => {
    await client.invalidateQueries({ queryKey })
    save.reset()
  }
  return {
    query,
    stored,
    draft: typed ?? stored,
    state: toState({ isConflict, hasFailed: error !== null, isTyped: typed !== null }),
    error,
    change: (draft: Draft) => {
      if (!isConflict) save.reset()
      setTyped(draft)
    },
    /** Saves over what somebody else has changed. */
    keepMine: reload,
    /** Forgets what was typed since. */
    takeTheirs: async () => {
      setTyped(null)
      await reload()
    },
    retry: () => save.reset(),
  }
}

function toState(of: { isConflict: boolean; hasFailed: boolean; isTyped: boolean }): SaveState {
  if (of.isConflict) return 'conflict'
  if (of.hasFailed) return 'failed'
  return of.isTyped ? 'saving' : 'saved'
}
