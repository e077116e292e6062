/**
 * The views of this release: one file a view in `clickhouse/views`, and their version. A file may
 * change: `migrate` replaces the view whose text is another one.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  formerNames,
  renderView,
  toFormerView,
  toViewParts,
} from '#shared/core/analytics/view-sql.ts'
import { MigrationError } from './migration-files.ts'

export type View = { name: string; text: string; checksum: string }

export type Views = {
  /** Rises with every change of a view, so that a release knows views that are newer than its own. */
  version: number
  views: View[]
}

/** The file of the version, in the folder of the views. */
const versionFile = 'VERSION'

/**
 * Reads and renders the views in a folder of ClickHouse's SQL files, former names included.
 * @param folder one without a folder of views has none
 * @throws MigrationError when a file does not create the view that its name says
 */
export async function readViews(folder: string, parts = toViewParts()): Promise<Views> {
  const place = join(folder, 'views')
  const names = await readdir(place).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const files = names.filter((name) => name.endsWith('.sql')).sort()
  const texts = await Promise.all(
    files.map(async (file) => {
      const name = file.replace(/\.sql$/, '')
      const text = await readFile(join(place, file), 'utf8')
      if (!text.startsWith(`create or replace view {analytics:Identifier}.${name} `)) {
        throw new MigrationError(`${join(place, file)}: expected it to create the view ${name}`)
      }
      return [name, renderView(text, parts)] as const
    }),
  )
  const former = Object.entries(formerNames).flatMap(([formerName, name]) => {
    const text = texts.find(([own]) => own === name)?.[1]
    return text === undefined ? [] : [[formerName, toFormerView(text, formerName, name)] as const]
  })
  const views = [...texts, ...former].map(([name, text]) => ({
    name,
    text,
    checksum: hash('sha256', text, 'hex'),
  }))
  return { views, version: views.length === 0 ? 0 : await readViewVersion(folder) }
}

/** @returns the version of the views in a folder of ClickHouse's SQL files */
export async function readViewVersion(folder: string): Promise<number> {
  const text = await readFile(join(folder, 'views', versionFile), 'utf8')
  return Number(/^version (\d+)$/m.exec(text)![1])
}

const head =
  '# Written by `npm run generate` when a view changes. A release leaves newer views as they are.'

/**
 * The text of the file of the version: another one when the views are not those that it is of.
 * @param before its text; null when there is none
 */
export function renderViewVersion(views: readonly View[], before: string | null): string {
  const checksum = hash('sha256', views.map((view) => view.checksum).join(), 'hex')
  const [, version = '0', of] = before?.match(/^version (\d+)\nsha256 (\w+)$/m) ?? []
  const next = Number(version) + (of === checksum ? 0 : 1)
  return `${head}\nversion ${next}\nsha256 ${checksum}\n`
}
