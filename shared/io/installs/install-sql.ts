/** SQL of the latest registration of a device, as a column of a query about the device. */
import type { DeviceInstall } from '#shared/core/devices/device-history.ts'

/**
 * The latest by the order of the stream. It is part of the query of the sessions, because a query
 * of its own would cost as much as that one.
 */
export const latestInstallSql = `(
  select argMax((
    toString(provider), toString(verdict), toString(level), toUnixTimestamp64Milli(received_at),
    toUnixTimestamp64Milli(expires_at)
  ), stream_offset)
  from installs where tenant_id = {tenant:String} and device_id = {device:String}
)`

/** All are empty or 0 when there is none. */
export type InstallTuple = [
  provider: DeviceInstall['provider'] | '',
  verdict: DeviceInstall['verdict'],
  level: DeviceInstall['level'],
  registeredAtMs: number | string,
  expiresAtMs: number | string,
]

export function toDeviceInstall(install: InstallTuple): DeviceInstall | null {
  const [provider, verdict, level, registeredAtMs, expiresAtMs] = install
  if (provider === '') return null
  // ClickHouse may write numbers of 64 bits as text.
  const times = { registeredAtMs: Number(registeredAtMs), expiresAtMs: Number(expiresAtMs) }
  return { provider, verdict, level, ...times }
}
