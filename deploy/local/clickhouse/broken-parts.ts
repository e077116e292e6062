// A full disk during a merge can leave an active part with empty or truncated files. Reads of it
// fail, and its source parts are deleted after a while. At its start the engine detaches such a
// part and uses the source parts again, so a restart in time repairs it.
import { type Dirent, readdirSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EngineAddress, queryEngine } from './query-engine.ts'

/**
 * A check costs 4 ms of CPU, so there are few while the disk is far from full. Even then there is
 * one within the two seconds for which a merged part's sources are kept.
 */
const everyMs = 1_500
const everyWhenLowMs = 500
/** Merges cannot write this much between two checks. */
const lowBytes = 2 * 1024 ** 3
/** The pause before a part that seems broken is checked again. */
const againMs = 100
const answerLimitMs = 5_000

/**
 * Every recently activated part, with its path and the total size of its files. A dropped partition
 * leaves a part without rows for a while, whose files may be empty.
 */
const recentParts = `
  SELECT path, bytes_on_disk FROM system.parts
  WHERE active AND rows > 0 AND modification_time > now() - INTERVAL 10 MINUTE
    AND database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')
  SETTINGS max_threads = 1, output_format_parallel_formatting = 0
  FORMAT JSONCompactEachRow`

/**
 * Checks repeatedly.
 * @param dataDir the engine's
 * @returns the folder of the first broken part
 */
export async function findBrokenPart(server: EngineAddress, dataDir: string): Promise<string> {
  // A part never changes, so a good one stays good.
  let whole: ReadonlySet<string> = new Set()
  while (true) {
    await sleep(isDiskLow(dataDir) ? everyWhenLowMs : everyMs)
    const first = await look(server, whole)
    if (first.broken.size > 0) {
      // Files of a table that is being dropped disappear one by one, but the table is not listed
      // any more.
      await sleep(againMs)
      const second = await look(server, first.whole)
      for (const path of second.broken) if (first.broken.has(path)) return path
    }
    whole = first.whole
  }
}

function isDiskLow(dataDir: string): boolean {
  const { bavail, bsize } = statfsSync(dataDir)
  return bavail * bsize < lowBytes
}

type Look = { whole: Set<string>; broken: Set<string> }

/** @param known parts that need no check */
async function look(server: EngineAddress, known: ReadonlySet<string>): Promise<Look> {
  const seen: Look = { whole: new Set(), broken: new Set() }
  const answer = await queryEngine(server, recentParts, answerLimitMs)
  for (const line of (answer ?? '').split('\n').filter(Boolean)) {
    const [path, bytes] = JSON.parse(line) as [string, number | string]
    const broken = !known.has(path) && isBroken(path, Number(bytes))
    seen[broken ? 'broken' : 'whole'].add(path)
  }
  return seen
}

/** Whether files are too short, or marks are empty. */
function isBroken(path: string, bytes: number): boolean {
  try {
    const sizes = listFiles(path).map((file) => ({ file, size: statSync(file).size }))
    if (sizes.some(({ file, size }) => size === 0 && /\.c?mrk\d?$/.test(file))) return true
    return sizes.reduce((sum, { size }) => sum + size, 0) < bytes
  } catch (error) {
    // The part was merged meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function listFiles(dir: string): string[] {
  const toFiles = (entry: Dirent): string[] => {
    const path = join(dir, entry.name)
    return entry.isDirectory() ? listFiles(path) : [path]
  }
  return readdirSync(dir, { withFileTypes: true }).flatMap(toFiles)
}
