/** The queue: one row for each case, and what a row says in two lines. */
import { memo } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { ActionBadge } from '../../components/badge.tsx'
import { classes } from '../../components/classes.ts'
import { cutMiddle } from '../../components/id.tsx'
import { RowList } from '../../components/rows/row-list.tsx'
import { Time, useNowMs } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import type { Case } from '../case/case.ts'
import { CaseStateBadge, DueBadge } from '../case/case-badges.tsx'
import { subjectNames, toFlagNames, toMoneyText } from '../case/case-words.ts'

const caseRowPx = 60

export function CaseList({
  cases,
  total,
  openId,
  onOpen,
  onEnd,
}: {
  cases: readonly Case[]
  /** Undefined while it is not known. */
  total: number | undefined
  openId: string
  onOpen: (caseId: string) => void
  /** Called when the last row comes near, to load more. */
  onEnd: () => void
}) {
  return (
    <RowList
      kind="case"
      label={total === undefined ? 'Cases' : `Cases, ${total} in all`}
      onEnd={onEnd}
      openId={openId}
      rowId={({ case_id: id }) => id}
      rowPx={caseRowPx}
      rows={cases}
      total={total ?? -1}
    >
      {(one) => <CaseRow caseOfRow={one} onOpen={onOpen} open={one.case_id === openId} />}
    </RowList>
  )
}

const CaseRow = memo(function CaseRow({
  caseOfRow: shown,
  open,
  onOpen,
}: {
  caseOfRow: Case
  /** It is shown in the right pane. */
  open: boolean
  onOpen: (caseId: string) => void
}) {
  const { case_id: id, subject, assignee } = shown
  const now = useNowMs()
  const money = toMoneyText(shown.money)
  return (
    <div
      className={classes(
        'h-full border-line border-b pr-3 pl-3',
        open ? 'bg-accent-soft' : 'hover:bg-hover',
      )}
    >
      <button
        aria-current={open}
        className="grid h-full w-full min-w-0 grid-cols-[minmax(0,1fr)] content-center gap-1 px-1 text-left outline-offset-[-2px]"
        data-case={id}
        onClick={() => onOpen(id)}
        type="button"
      >
        <span className="flex items-center gap-2">
          <span className="w-17 shrink-0">
            <ActionBadge action={shown.action} />
          </span>
          <span className="w-7 shrink-0 text-right font-semibold" title="Highest risk score">
            {shown.risk_score}
          </span>
          <span className="text-muted text-sm max-sm:hidden">{subjectNames[subject.kind]}</span>
          <bdi
            className="min-w-0 flex-1 truncate font-mono text-sm"
            title={toVisible(subject.id)}
            translate="no"
          >
            {cutMiddle(toVisible(subject.id), 26)}
          </bdi>
          <span className="text-muted text-sm">
            <Time at={shown.first_alert_at} />
          </span>
        </span>
        <span className="flex items-center gap-2">
          <span className="whitespace-nowrap text-sm">{counted(shown.alerts, 'alert')}</span>
          <span className="min-w-0 flex-1 truncate text-muted text-sm">
            {toFlagNames(shown.flags)}
          </span>
          {money !== '' && <span className="whitespace-nowrap font-medium text-sm">{money}</span>}
          {assignee !== null && (
            <span className="max-w-24 truncate text-muted text-sm" title={assignee}>
              {assignee.split('@')[0]}
            </span>
          )}
          <DueBadge nowMs={now} of={shown} />
          {/* Most are open: what is not says so. */}
          {(shown.state !== 'OPEN' || shown.snoozed_until !== null) && (
            <CaseStateBadge of={shown} />
          )}
        </span>
      </button>
    </div>
  )
})
