/**
 * Data of servers that have every migration, for servers to copy: to migrate takes half a second of
 * CPU, to copy next to nothing. The first server of a run that needs a template makes it, the
 * others wait for it, and the run removes it at its end: it is never older than the migrations.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../process/until.ts'

/** Called by Vitest's main process when the run has ended. */
export async function teardown(): Promise<void> {
  if (process.env.TEST_TEMPLATES === undefined) return
  await rm(process.env.TEST_TEMPLATES, { recursive: true, force: true })
}

/**
 * @param make makes the data in a folder that does not exist yet, and ends its server
 * @returns the folder of the data, or null outside of a run of Vitest
 */
export async function findTemplate(
  name: 'postgres' | 'clickhouse',
  make: (dir: string) => Promise<void>,
): Promise<string | null> {
  const folder = process.env.TEST_TEMPLATES
  if (folder === undefined) return null
  mkdirSync(folder, { recursive: true })
  const made = join(folder, name)
  if (isFirst(`${made}.first`)) {
    await make(`${made}.new`)
    await rename(`${made}.new`, made)
  }
  await until(`another server has made the template of ${name}`, () => existsSync(made))
  return made
}

/** Of all that call it with one folder, in any process, one makes it. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
