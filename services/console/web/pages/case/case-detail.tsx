/** One case: whom it is about and why, its alerts, and what happened to it. */
import { ActionBadge, SeverityBadge } from '../../components/badge.tsx'
import { Panel } from '../../components/page.tsx'
import { Failed, SkeletonRows, Waiting } from '../../components/states.tsx'
import { Time, useNowMs } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import { useMay } from '../../shell/operator.ts'
import type { Case, CaseRecord } from './case.ts'
import { CaseStateBadge, DueBadge } from './case-badges.tsx'
import { MoreOfCase } from './case-more.tsx'
import { CaseMenu } from './changes/case-menu.tsx'
import { JudgeButtons } from './judging/judge-buttons.tsx'
import type { useJudging } from './judging/judging.ts'
import { Presence } from './presence.tsx'
import { SubjectLink } from './subject-link.tsx'

export function CaseDetail({
  shown,
  record,
  error,
  judging,
  onRetry,
  onOpen,
}: {
  /** What a list knows already is shown at once. */
  shown: Case
  /** The rest, once it has arrived. */
  record: CaseRecord | undefined
  error: unknown
  judging: ReturnType<typeof useJudging>
  onRetry: () => void
  /** Opens another case. */
  onOpen: (caseId: string) => void
}) {
  const mayJudge = useMay('analyst')
  const now = useNowMs()
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] content-start gap-4">
      <div className="grid gap-2">
        <h2 className="flex min-w-0 flex-wrap items-baseline gap-x-2 font-semibold text-lg">
          <SubjectLink shown={shown} />
        </h2>
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <SeverityBadge severity={shown.severity} />
          <ActionBadge action={shown.action} />
          <span className="font-semibold text-lg" title="Highest risk score of its alerts">
            {shown.risk_score}
          </span>
          <span>
            {counted(shown.alerts, 'alert')}
            {shown.open_alerts < shown.alerts && `, ${shown.open_alerts} open`}
          </span>
          <span className="text-muted">
            since <Time at={shown.first_alert_at} />
          </span>
          <DueBadge nowMs={now} of={shown} />
          <CaseStateBadge of={shown} />
          {record && mayJudge && <Presence caseId={shown.case_id} />}
        </div>
      </div>
      {mayJudge && (
        <div className="flex flex-wrap items-center gap-2">
          {shown.state === 'OPEN' && <JudgeButtons judging={judging} shown={shown} />}
          {record && <CaseMenu onOpen={onOpen} shown={shown} />}
        </div>
      )}
      {record === undefined ? (
        <Panel>
          {error ? (
            <Failed error={error} onRetry={onRetry} />
          ) : (
            <Waiting onRetry={onRetry}>
              <SkeletonRows rows={8} />
            </Waiting>
          )}
        </Panel>
      ) : (
        <MoreOfCase judging={judging} key={shown.case_id} onOpen={onOpen} record={record} />
      )}
    </div>
  )
}
