// On ext4 without a journal a new file costs up to twenty times as much while many others were
// removed lately: each is looked past that was in the same group of the disk, and ClickHouse makes
// and removes hundreds of files a second, all of them in one. So there each table's folder is
// marked such that what is made in it goes to a group of its own. With a journal none of it is so.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readlinkSync, statSync, watch } from 'node:fs'
import { basename, join } from 'node:path'

/** A table is a folder within a new folder: it is there by then. */
const settledMs = 250

export type SpreadOptions = {
  lacksJournal: (folder: string) => boolean
  /** Marks folders; whether that works is nobody's business. */
  mark: (folders: readonly string[]) => void
}

/**
 * Marks the folders of the tables that are there and of those that come.
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

/** Where the machine has no watches left, nobody is told, and nothing ends for it. */
function watchFolder(folder: string, told: () => void): () => void {
  try {
    const watcher = watch(folder, { persistent: false }, told)
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => undefined
  }
}

/** What is removed meanwhile needs no mark. */
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

/** As far as Linux tells; else not. */
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

/** @returns `major:minor`, as glibc takes a device's number apart */
export function toDevice(dev: number): string {
  const bits = BigInt(dev)
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n)
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/** "The top of a hierarchy": its folders have nothing to do with one another. */
function markTop(folders: readonly string[]): void {
  execFile('chattr', ['+T', '--', ...folders], () => undefined)
}
