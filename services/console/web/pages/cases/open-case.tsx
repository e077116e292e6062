/** The right pane: the case that is open, from the queue at once, with more as it arrives. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useTenantOf } from '../../api/tenants.ts'
import { Loaded } from '../../components/states.tsx'
import { useSettled } from '../alerts/list/use-open-row.ts'
import { type Case, caseQuery, showCase } from '../case/case.ts'
import { CaseDetail } from '../case/case-detail.tsx'
import type { useJudging } from '../case/judging/judging.ts'
import { useSeen } from '../case/judging/use-seen.ts'

export { JudgedBar } from '../case/judging/judged-bar.tsx'

export function OpenCase({
  caseId,
  inList,
  judging,
  onOpen,
  onSeen,
}: {
  caseId: string
  /** Undefined for one that the list has not loaded, for example one in a link. */
  inList: Case | undefined
  judging: ReturnType<typeof useJudging>
  /** Opens another case. */
  onOpen: (caseId: string) => void
  /** Called with the case as the person has seen it: what a judgement is of. */
  onSeen: (shown: Case) => void
}) {
  // Keys that repeat pass cases without loading what is behind each.
  const settled = useSettled(caseId)
  const query = useQuery({ ...caseQuery(caseId), enabled: settled === caseId })
  useTenantOf(query.data?.case.tenant_id)
  const shown = query.data?.case ?? inList
  const client = useQueryClient()
  // The queue may be older: its row shows what the case is now, in its place.
  useEffect(() => {
    const known = query.data?.case
    if (known === undefined || inList?.case_id !== known.case_id) return
    if (inList.version < known.version) showCase(client, known)
  }, [client, query.data, inList])
  useSeen(shown, query.data !== undefined, onSeen)
  return (
    <Loaded query={{ ...query, data: shown }}>
      {(known) => (
        <CaseDetail
          error={query.error}
          judging={judging}
          onOpen={onOpen}
          onRetry={() => void query.refetch()}
          record={query.data}
          shown={known}
        />
      )}
    </Loaded>
  )
}
