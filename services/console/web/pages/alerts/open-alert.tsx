/** The right pane: the alert that is open, from the list at once, with more as it arrives. */

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { useTenantOf } from '../../api/tenants.ts'
import { Loaded } from '../../components/states.tsx'
import { type Alert, alertQuery, patchAlerts } from '../alert/alert.ts'
import { AlertDetail } from '../alert/alert-detail.tsx'
import { isChanging } from '../alert/changes.ts'
import { useSettled } from './list/use-open-row.ts'

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
  useTenantOf(record?.alert.tenant_id)
  const client = useQueryClient()
  // The list may be older: its row shows what the alert is now, in its place.
  useEffect(() => {
    if (record === undefined || inList === undefined || isChanging(alertId)) return
    const { alert_id: id, disposition, assignee } = record.alert
    if (id !== inList.alert_id) return
    if (disposition === inList.disposition && assignee === inList.assignee) return
    patchAlerts(client, (one) => (one.alert_id === id ? { ...one, disposition, assignee } : one))
  }, [client, record, inList, alertId])
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
