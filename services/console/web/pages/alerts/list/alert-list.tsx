/** The list of alerts. */
import { RowList } from '../../../components/rows/row-list.tsx'
import type { Alert } from '../../alert/alert.ts'
import { AlertRow, alertRowPx } from './alert-row.tsx'

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
  return (
    <RowList
      kind="alert"
      label={`Alerts, ${total} in all`}
      onEnd={onEnd}
      openId={openId}
      rowId={({ alert_id: id }) => id}
      rowPx={alertRowPx}
      rows={alerts}
      total={total}
    >
      {(alert) => (
        <AlertRow
          alert={alert}
          checked={checked.has(alert.alert_id)}
          onCheck={onCheck}
          onOpen={onOpen}
          open={alert.alert_id === openId}
        />
      )}
    </RowList>
  )
}
