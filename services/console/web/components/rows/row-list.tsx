/**
 * A list of rows that open something beside it. Only the rows in view are in the document, and rows
 * keep their place until the list is read again, so none moves under the pointer.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useEffect, useRef } from 'react'

/** Rows beyond each edge of the view; with a screen of 2,160 px that is 60 rows at most. */
const overscan = 10

export function RowList<Row>({
  kind,
  rows,
  rowPx,
  rowId,
  label,
  total,
  openId,
  onEnd,
  children,
}: {
  /** A row's button has its id in `data-alert` or `data-case`. */
  kind: 'alert' | 'case'
  rows: readonly Row[]
  rowPx: number
  rowId: (row: Row) => string
  /** What the list is of, for screen readers. */
  label: string
  /** -1 when it is not known. */
  total: number
  openId: string
  /** Called when the last row comes near, to load more. */
  onEnd: () => void
  children: (row: Row) => ReactNode
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    getItemKey: (at) => (rows[at] === undefined ? at : rowId(rows[at])),
    overscan,
    onChange: ({ range }) => {
      if (range !== null && range.endIndex >= rows.length - overscan) onEnd()
    },
  })
  const openAt = rows.findIndex((row) => rowId(row) === openId)
  const closed = useRef('')
  useEffect(() => {
    if (openAt >= 0) virtual.scrollToIndex(openAt, { align: 'auto' })
    // The keyboard's place follows the row that is open, and returns to it when it is closed, unless
    // it is elsewhere on purpose.
    const id = openId === '' ? closed.current : openId
    closed.current = openId
    if (id === '') return
    const active = document.activeElement
    if (active !== document.body && !scroller.current?.contains(active)) return
    scroller.current
      ?.querySelector<HTMLElement>(`[data-${kind}="${CSS.escape(id)}"]`)
      ?.focus({ preventScroll: true })
  }, [kind, openAt, openId, virtual])
  const attributes = { [`data-${kind}-list`]: true }
  return (
    <div className="min-h-0 flex-1 overflow-auto" ref={scroller} {...attributes}>
      <ul aria-label={label} className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start, key }) => (
          <li
            aria-posinset={index + 1}
            aria-setsize={total}
            className="absolute inset-x-0 top-0"
            key={key}
            style={{ height: rowPx, transform: `translateY(${start}px)` }}
          >
            {children(rows[index]!)}
          </li>
        ))}
      </ul>
    </div>
  )
}
