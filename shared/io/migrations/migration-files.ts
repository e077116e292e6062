/** The numbered SQL files of a store, which together are the schema of this release. */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Migration = { name: string; text: string; checksum: string }

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))

export const sqlFolders = {
  postgres: join(projectFolder, 'postgres'),
  clickhouse: join(projectFolder, 'clickhouse'),
} as const

/** The schema does not match the files; an operator has to decide. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationError'
  }
}

/**
 * Reads the numbered files of a folder in order.
 * @throws MigrationError when the numbers are not 0001, 0002, ... without a gap
 */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = await listNames(folder)
  names.forEach((name, index) => {
    const number = String(index + 1).padStart(4, '0')
    if (new RegExp(`^${number}-[a-z0-9-]+\\.sql$`).test(name)) return
    throw new MigrationError(`${join(folder, name)}: expected the file ${number}-<what>.sql here`)
  })
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8')
      return { name, text, checksum: hash('sha256', text, 'hex') }
    }),
  )
}

/** The names of the files of a folder, in order. */
const listNames = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()

/** @returns the name of the last file: the version of the schema that this release needs */
export async function findLastMigration(store: keyof typeof sqlFolders): Promise<string> {
  return (await listNames(sqlFolders[store])).at(-1)!
}
