/** The oldest versions of the three servers that this release works with. */

export type ServerName = 'NATS' | 'Postgres' | 'ClickHouse'

/** Postgres has one number, the others two. */
export const oldestServers: Readonly<Record<ServerName, string>> = {
  // With `sync_interval`, and without the fault that deletes a stream after a kill.
  NATS: '2.10.23',
  Postgres: '15',
  // The first one whose JSON type is ready for production.
  ClickHouse: '25.3',
}

/** The versions of nats-server that keep a stream safe on several servers. */
export const neededByReplicas = '2.12.15 or newer, but not 2.13'

/**
 * @param version as the server names it: `2.15.1`, `18.4 (Debian 18.4-1)`, `26.7.14.3`
 * @returns whether it is older; false for a text without a number
 */
export function isOlder(version: string, oldest: string): boolean {
  const [found, wanted] = [version, oldest].map((text) =>
    (/^v?(\d+(?:\.\d+)*)/.exec(text)?.[1] ?? '').split('.').filter(Boolean).map(Number),
  ) as [number[], number[]]
  if (found.length === 0) return false
  const at = wanted.findIndex((number, index) => number !== (found[index] ?? 0))
  return at >= 0 && (found[at] ?? 0) < wanted[at]!
}

/** @returns null, or what is wrong, as the end of a sentence: `has version 14.9; ...` */
export function describeOldServer(server: ServerName, version: string): string | null {
  const oldest = oldestServers[server]
  return isOlder(version, oldest) ? `has version ${version}; ${oldest} or newer is needed` : null
}

/**
 * @param replicas `NATS_REPLICAS`
 * @returns like `describeOldServer`
 */
export function describeOldNats(version: string, replicas: number): string | null {
  const old = describeOldServer('NATS', version)
  if (old !== null || replicas === 1) return old
  const fits =
    !isOlder(version, '2.14') || (isOlder(version, '2.13') && !isOlder(version, '2.12.15'))
  return fits ? null : `has version ${version}; NATS_REPLICAS=${replicas} needs ${neededByReplicas}`
}
