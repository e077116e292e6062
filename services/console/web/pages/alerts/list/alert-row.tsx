/** One alert in the list: what it is about in two lines, with a box that selects it. */
import { memo } from 'react'
import { nameFlags } from '#shared/core/alerts/alert-sentence.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { ActionBadge, Badge, SeverityBadge } from '../../../components/badge.tsx'
import { classes } from '../../../components/classes.ts'
import { IdText } from '../../../components/id.tsx'
import { Time } from '../../../components/time/time.tsx'
import type { Alert } from '../../alert/alert.ts'
import { DispositionBadge } from '../../alert/disposition.tsx'

export const alertRowPx = 60

/** A browser tells a change of a box as the click that made it. */
const isWithShift = (event: Event): boolean => event instanceof MouseEvent && event.shiftKey

export const AlertRow = memo(function AlertRow({
  alert,
  open,
  checked,
  hasSpike,
  onOpen,
  onCheck,
}: {
  alert: Alert
  /** It is shown in the right pane. */
  open: boolean
  checked: boolean
  /** A spike is open for one of its signals: likely a bad release. */
  hasSpike: boolean
  onOpen: (alertId: string) => void
  onCheck: (alertId: string, toHere?: boolean) => void
}) {
  const { alert_id: id, decision, entity, flags } = alert
  return (
    <div
      className={classes(
        'flex h-full gap-2 border-line border-b pr-2 pl-4',
        open ? 'bg-accent-soft' : 'hover:bg-hover',
      )}
    >
      <input
        aria-label={`Select the alert of ${toVisible(entity.device.device_id)}`}
        checked={checked}
        className="mt-2.5 size-4 shrink-0 accent-accent"
        onChange={({ nativeEvent }) => onCheck(id, isWithShift(nativeEvent))}
        type="checkbox"
      />
      <button
        aria-current={open}
        className="grid min-w-0 flex-1 grid-cols-[minmax(0,1fr)] content-center gap-1 px-1 text-left outline-offset-[-2px] select-none"
        data-alert={id}
        onClick={({ shiftKey }) => (shiftKey ? onCheck(id, true) : onOpen(id))}
        type="button"
      >
        <span className="flex items-center gap-2">
          <SeverityBadge severity={decision.severity} />
          <span className="font-semibold" title="Risk score">
            {decision.risk_score}
          </span>
          <span className="min-w-0 truncate font-mono text-sm">
            <IdText most={24} value={entity.device.device_id} />
          </span>
          <span className="ml-auto text-muted text-sm">
            <Time at={alert.created_at} />
          </span>
        </span>
        <span className="flex items-center gap-2">
          <ActionBadge action={decision.action} />
          <span className="min-w-0 flex-1 truncate text-muted text-sm" title={flags.join(', ')}>
            {nameFlags(flags)}
          </span>
          {hasSpike && (
            <span title="A spike is open for a signal of it: likely a bad release">
              <Badge tone="warn">Spike</Badge>
            </span>
          )}
          {alert.assignee !== null && (
            <span className="max-w-24 truncate text-muted text-sm" title={alert.assignee}>
              {alert.assignee.split('@')[0]}
            </span>
          )}
          <DispositionBadge disposition={alert.disposition} />
        </span>
      </button>
    </div>
  )
})
