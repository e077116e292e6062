/** Finds a device whose events have expired: it answers for as long as an alert names it. */
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import type { DeviceHistory } from '#shared/core/devices/device-history.ts'
import { type AlertsPage, toDeviceOfAlerts } from '#shared/core/devices/device-of-alerts.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'

/** @returns what its latest alerts say; null when none names it */
export async function findDeviceInAlerts(
  { listUncounted }: Pick<AlertStore, 'listUncounted'>,
  query: AlertsPage & { tenantId: string },
): Promise<DeviceHistory | null> {
  const { tenantId, deviceId: device_id } = query
  const asked = { tenantId, filter: { device_id }, limit: alertsPageMax, after: null }
  return toDeviceOfAlerts((await listUncounted(asked)).alerts, query)
}
