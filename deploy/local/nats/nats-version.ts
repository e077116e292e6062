// Reads the version of a nats-server binary. It decides whether an acknowledged message survives a
// power cut: `sync_interval: always` exists since 2.10.

import { spawnSync } from 'node:child_process'

export type NatsServerBinary = { file: string; version: string; order: number }

/** A number that orders versions: 2.10.3 is 2_010_003. */
function versionOrder(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return major * 1_000_000 + minor * 1_000 + patch
}

/** The first version that can sync before it acknowledges. */
export const SYNC_ALWAYS_ORDER = versionOrder('2.10.0')

/** The version of the program in `file`, or null when it is not a nats-server that runs here. */
export function readNatsVersion(file: string): NatsServerBinary | null {
  const result = spawnSync(file, ['--version'], { encoding: 'utf8', timeout: 10_000 })
  const version = /v(\d+\.\d+\.\d+)/.exec(result.stdout ?? '')?.[1]
  return version ? { file, version, order: versionOrder(version) } : null
}
