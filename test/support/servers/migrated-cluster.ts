/**
 * A PostgreSQL cluster with a database that has every migration, for servers to copy: to migrate
 * takes a third of a second of CPU, to copy a database a fiftieth. The first server of a run makes
 * it, the others wait for it, and the run removes it at its end, so it is never older than the
 * migrations.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../process/until.ts'

/** The name of the migrated database. */
export const templateDatabase = 'migrated'

/** Vitest's main process removes the folder when the run has ended. */
export default function setup(): () => Promise<void> {
  return async () => {
    if (process.env.TEST_TEMPLATES === undefined) return
    await rm(process.env.TEST_TEMPLATES, { recursive: true, force: true })
  }
}

/**
 * @param make makes the cluster in a folder that does not exist yet
 * @returns the folder of the cluster, or null outside of a run of Vitest
 */
export async function findMigratedCluster(
  make: (dir: string) => Promise<void>,
): Promise<string | null> {
  const folder = process.env.TEST_TEMPLATES
  if (folder === undefined) return null
  const made = join(folder, 'postgres')
  if (isFirst(folder)) {
    await make(`${made}.new`)
    await rename(`${made}.new`, made)
  }
  await until('another server has made the migrated cluster', () => existsSync(made))
  return made
}

/** Of all processes one makes the folder. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
