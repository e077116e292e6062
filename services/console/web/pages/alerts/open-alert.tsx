/** The right pane: the alert that is open, from the list at once, with more as it arrives. */
import { useQuery } from '@tanstack/react-query'
import { Loaded } from '../../components/states.tsx'
import { type Alert, alertQuery, type Disposition } from '../alert/alert.ts'
import { AlertDetail } from '../alert/alert-detail.tsx'
import { useSettled } from './list/use-open-alert.ts'

export function OpenAlert({
  alertId,
  inList,
  onDisposition,
}: {
  alertId: string
  /** Undefined for one that the list has not loaded, for example one in a link. */
  inList: Alert | undefined
  onDisposition: (to: Disposition, alert: Alert) => void
}) {
  // Keys that repeat pass alerts without loading what is behind each.
  const settled = useSettled(alertId)
  const query = useQuery({ ...alertQuery(alertId), enabled: settled === alertId })
  const record = query.data
  return (
    <Loaded query={{ ...query, data: record?.alert ?? inList }}>
      {(alert) => (
        <AlertDetail
          alert={alert}
          error={query.error}
          onDisposition={(to) => onDisposition(to, alert)}
          onRetry={() => void query.refetch()}
          record={record}
        />
      )}
    </Loaded>
  )
}
