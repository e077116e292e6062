// The engine of the local stack runs only on platforms with a hash in the lock file: npm does not
// verify a package without one. Platforms differ, because a lock file only has the hashes of its
// registry.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { StartError } from '../stack/settings.ts'

type Lock = { packages: Record<string, { integrity?: string }> }

/** @throws StartError on a platform whose engine has no hash in package-lock.json */
export function requirePinnedEngine(
  projectDir: string,
  platform = `${process.platform}-${process.arch}`,
): void {
  const lock = JSON.parse(readFileSync(join(projectDir, 'package-lock.json'), 'utf8')) as Lock
  const pinned = Object.entries(lock.packages).some(
    ([path, { integrity }]) =>
      path.startsWith(`node_modules/@chdb/lib-${platform}`) && integrity !== undefined,
  )
  if (pinned) return
  throw new StartError(
    `no embedded ClickHouse engine for ${platform}: package-lock.json has no hash of one. ` +
      'Set CLICKHOUSE_URL to a ClickHouse 26.7 or newer, or use deploy/compose.yaml.',
  )
}
