/** The list of alerts. */
import { useQuery } from '@tanstack/react-query'
import { RowList } from '../../../components/rows/row-list.tsx'
import type { Alert } from '../../alert/alert.ts'
import { isOfSpike } from '../../signals/is-of-spike.ts'
import { openSpikesQuery } from '../../signals/open-spikes.ts'
import { AlertRow, alertRowPx } from './alert-row.tsx'

export function AlertList({
  tenant,
  alerts,
  total,
  openId,
  checked,
  onOpen,
  onCheck,
  onEnd,
}: {
  tenant: string
  alerts: readonly Alert[]
  total: number
  openId: string
  checked: ReadonlySet<string>
  onOpen: (alertId: string) => void
  onCheck: (alertId: string, toHere?: boolean) => void
  /** Called when the last row comes near, to load more. */
  onEnd: () => void
}) {
  const spikes = useQuery(openSpikesQuery(tenant)).data?.data ?? []
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
          hasSpike={spikes.some((spike) => isOfSpike(alert, spike))}
          onCheck={onCheck}
          onOpen={onOpen}
          open={alert.alert_id === openId}
        />
      )}
    </RowList>
  )
}
