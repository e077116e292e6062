/**
 * The list of alerts. Only the rows in view are in the document, and rows keep their place until
 * the list is read again, so none moves under the pointer.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef } from 'react'
import type { Alert } from '../../alert/alert.ts'
import { AlertRow, alertRowPx } from './alert-row.tsx'

/** Rows beyond each edge of the view; with a screen of 2,160 px that is 60 rows at most. */
const overscan = 10

export function AlertList({
  alerts,
  total,
  openId,
  checked,
  onOpen,
  onCheck,
  onEnd,
}: {
  alerts: readonly Alert[]
  total: number
  openId: string
  checked: ReadonlySet<string>
  onOpen: (alertId: string) => void
  onCheck: (alertId: string, toHere?: boolean) => void
  /** Called when the last row comes near, to load more. */
  onEnd: () => void
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: alerts.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => alertRowPx,
    getItemKey: (at) => alerts[at]?.alert_id ?? at,
    overscan,
    onChange: ({ range }) => {
      if (range !== null && range.endIndex >= alerts.length - overscan) onEnd()
    },
  })
  const openAt = alerts.findIndex(({ alert_id: id }) => id === openId)
  useEffect(() => {
    if (openAt < 0) return
    virtual.scrollToIndex(openAt, { align: 'auto' })
    // The keyboard's place follows the alert that is open, unless it is elsewhere on purpose.
    const active = document.activeElement
    if (active !== document.body && !scroller.current?.contains(active)) return
    scroller.current?.querySelector<HTMLElement>(`[data-alert="${CSS.escape(openId)}"]`)?.focus({
      preventScroll: true,
    })
  }, [openAt, openId, virtual])
  return (
    <div className="min-h-0 flex-1 overflow-auto" data-alert-list ref={scroller}>
      <ul
        aria-label={`Alerts, ${total} in all`}
        className="relative"
        style={{ height: virtual.getTotalSize() }}
      >
        {virtual.getVirtualItems().map(({ index, start, key }) => {
          const alert = alerts[index]!
          return (
            <li
              aria-posinset={index + 1}
              aria-setsize={total}
              className="absolute inset-x-0 top-0"
              key={key}
              style={{ height: alertRowPx, transform: `translateY(${start}px)` }}
            >
              <AlertRow
                alert={alert}
                checked={checked.has(alert.alert_id)}
                onCheck={onCheck}
                onOpen={onOpen}
                open={alert.alert_id === openId}
              />
            </li>
          )
        })}
      </ul>
    </div>
  )
}
