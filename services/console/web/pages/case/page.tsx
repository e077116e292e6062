/** One case on a page of its own, as a link leads to it. */
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useRef } from 'react'
import { useTenantOf } from '../../api/tenants.ts'
import { buttonClasses } from '../../components/button.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { Loaded, SkeletonRows } from '../../components/states.tsx'
import { useMay } from '../../shell/operator.ts'
import { focusNote, useNoteGuard } from '../alert/notes.ts'
import { useKeys } from '../alerts/triage/keys.ts'
import { type Case, caseQuery } from './case.ts'
import { keysOfJudging, useJudging } from './judging/judging.ts'
import { useSeen } from './judging/use-seen.ts'

const CaseDetail = lazy(() =>
  import('./case-detail.tsx').then(({ CaseDetail: shown }) => ({ default: shown })),
)
const JudgedBar = lazy(() =>
  import('./judging/judged-bar.tsx').then(({ JudgedBar: shown }) => ({ default: shown })),
)

export function Page() {
  const { tenant = '', caseId = '' } = useParams({ strict: false })
  const navigate = useNavigate()
  const found = useQuery(caseQuery(caseId))
  useTenantOf(found.data?.case.tenant_id)
  const mayJudge = useMay('analyst')
  const open = (id: string) =>
    void navigate({ to: '/t/$tenant/cases/$caseId', params: { tenant, caseId: id } })
  const judging = useJudging({ onJudged: () => undefined, onReturn: () => undefined })
  const seen = useRef<Case>(undefined)
  useSeen(found.data?.case, true, (shown) => {
    seen.current = shown
  })
  useNoteGuard()
  useKeys(mayJudge ? { ...keysOfJudging(judging, () => seen.current), n: focusNote } : {})
  return (
    <Frame
      controls={
        <Link
          className={`${buttonClasses()} no-underline!`}
          params={{ tenant }}
          search={{ case: caseId }}
          to="/t/$tenant/cases"
        >
          Open in the queue
        </Link>
      }
      title="Case"
    >
      <Loaded query={found}>
        {(record) => (
          <Suspense fallback={<SkeletonRows />}>
            <CaseDetail
              error={null}
              judging={judging}
              onOpen={open}
              onRetry={() => void found.refetch()}
              record={record}
              shown={record.case}
            />
          </Suspense>
        )}
      </Loaded>
      {judging.judged && (
        <div className="sticky bottom-0 -mx-4 sm:-mx-6">
          <Suspense>
            <JudgedBar judged={judging.judged} judging={judging} />
          </Suspense>
        </div>
      )}
    </Frame>
  )
}
