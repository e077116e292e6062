// On ext4 without a journal, creating a file costs up to twenty times as much after many files of
// the same block group were removed, and ClickHouse creates and removes hundreds of files a second
// in one group. So each table's folder is marked to put its files into its own group. With a
// journal this is not needed.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readlinkSync, statSync, watch } from 'node:fs'
import { basename, join } from 'node:path'

/** A table is a folder within a new folder, created within this time. */
const settledMs = 250

export type SpreadOptions = {
  lacksJournal: (folder: string) => boolean
  /** Marks folders; failures are ignored. */
  mark: (folders: readonly string[]) => void
}

/**
 * Marks the folders of all tables, now and later.
 * @param dataDir the engine's
 * @returns ends it
 */
export function spreadParts(
  dataDir: string,
  { lacksJournal, mark }: SpreadOptions = { lacksJournal: isWithoutJournal, mark: markTop },
): () => void {
  const store = join(dataDir, 'store')
  mkdirSync(store, { recursive: true })
  if (!lacksJournal(store)) return () => undefined
  const marked = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const markNew = () => {
    timer = undefined
    const fresh = listTables(store).filter((folder) => !marked.has(folder))
    for (const folder of fresh) marked.add(folder)
    if (fresh.length > 0) mark(fresh)
  }
  const unwatch = watchFolder(store, () => {
    timer ??= setTimeout(markNew, settledMs).unref()
  })
  markNew()
  return () => {
    clearTimeout(timer)
    unwatch()
  }
}

/** When the system has no free watches, later tables are not marked. */
function watchFolder(folder: string, onChange: () => void): () => void {
  try {
    const watcher = watch(folder, { persistent: false }, onChange)
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => undefined
  }
}

/** Folders removed meanwhile are left out. */
function listTables(store: string): string[] {
  const list = (folder: string) => {
    try {
      return readdirSync(folder).map((name) => join(folder, name))
    } catch {
      return []
    }
  }
  return list(store).flatMap(list)
}

/** False when it is unknown. */
function isWithoutJournal(folder: string): boolean {
  try {
    const name = basename(readlinkSync(`/sys/dev/block/${toDevice(statSync(folder).dev)}`))
    if (!existsSync(`/proc/fs/ext4/${name}`)) return false
    const journals = existsSync('/proc/fs/jbd2') ? readdirSync('/proc/fs/jbd2') : []
    return !journals.some((journal) => journal.startsWith(`${name}-`))
  } catch {
    return false
  }
}

/** @returns `major:minor`, split as glibc splits a device number */
export function toDevice(dev: number): string {
  const bits = BigInt(dev)
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n)
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/** "The top of a hierarchy": the file system spreads its folders over block groups. */
function markTop(folders: readonly string[]): void {
  execFile('chattr', ['+T', '--', ...folders], () => undefined)
}
