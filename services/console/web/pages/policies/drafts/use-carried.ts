/**
 * What a link to the editor carries: a suppression begins a draft with it; a signal opens the
 * person's own latest draft, or begins one, at the weight of that signal.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { useUrlSearch } from '../../../components/state/url-state.ts'
import { useMay, useSignedIn } from '../../../shell/operator.ts'
import { addSuppression, readSuppression } from '../form/suppressions.tsx'
import type { PolicyDocument } from '../policy-document.ts'
import { draftsQuery } from './use-draft.ts'

export function useCarried({
  tenant,
  inForce,
  isIdle,
  begin,
}: {
  tenant: string
  inForce: { version: number; document: unknown } | undefined
  /** Whether no draft is open, and none was begun. */
  isIdle: boolean
  begin: (document: unknown, baseVersion: number, comment?: string) => void
}): void {
  const [search, change] = useUrlSearch()
  const mayEdit = useMay('engineer')
  const { email } = useSignedIn().operator
  const suppression = readSuppression(search)
  const weight = search.weight ?? ''
  const isWanted = isIdle && mayEdit && (suppression !== null || weight !== '')
  const drafts = useQuery({ ...draftsQuery(tenant), enabled: isWanted }).data?.data
  const hasBegun = useRef(false)
  useEffect(() => {
    if (!isWanted || inForce === undefined || hasBegun.current) return
    const { version, document } = inForce
    if (suppression !== null) {
      hasBegun.current = true
      begin(addSuppression(document as PolicyDocument, suppression), version, suppression.reason)
    } else if (drafts !== undefined) {
      hasBegun.current = true
      const own = drafts.find((one) => one.created_by === email && one.base_version === version)
      if (own === undefined) begin(document, version)
      else change({ tab: 'edit', draft: own.draft_id })
    }
  }, [isWanted, inForce, suppression, drafts, email, begin, change])
}
