// A disk that fills up while the engine merges can leave a merged part of which files are empty or
// cut short, in force as if all were well: readers fail on it, and what it was merged from is kept
// for a while only. An engine that starts checks its parts, puts such a one aside and goes on with
// those that it was made of. So whoever finds one in time has to start the engine again.
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { askEngine, type EngineAddress } from './ask.ts'

const everyMs = 1_000
const answerLimitMs = 5_000

/**
 * Every part that came into force lately, with its place and what its files weigh together. What a
 * dropped partition leaves for a while is a part without rows, whose files may be empty.
 */
const recentParts = `
  SELECT path, bytes_on_disk FROM system.parts
  WHERE active AND rows > 0 AND modification_time > now() - INTERVAL 10 MINUTE
    AND database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')
  FORMAT JSONCompactEachRow`

/** Looks again and again. @returns the folder of the first part found broken */
export async function findBrokenPart(server: EngineAddress): Promise<string> {
  let whole = new Set<string>()
  let suspects = new Set<string>()
  while (true) {
    await sleep(everyMs)
    const answer = await askEngine(server, recentParts, answerLimitMs)
    if (answer === null) continue
    const seen = { whole: new Set<string>(), suspects: new Set<string>() }
    for (const line of answer.split('\n').filter(Boolean)) {
      const [path, bytes] = JSON.parse(line) as [string, number | string]
      // A part never changes: what was whole once is.
      if (whole.has(path) || !isBroken(path, Number(bytes))) seen.whole.add(path)
      // One whose table is being dropped at the moment is not there for a second look.
      else if (suspects.has(path)) return path
      else seen.suspects.add(path)
    }
    ;({ whole, suspects } = seen)
  }
}

/** Whether files are missing bytes, or say nothing about where rows are. */
function isBroken(path: string, bytes: number): boolean {
  try {
    const sizes = listFiles(path).map((file) => ({ file, size: statSync(file).size }))
    if (sizes.some(({ file, size }) => size === 0 && /\.c?mrk\d?$/.test(file))) return true
    return sizes.reduce((sum, { size }) => sum + size, 0) < bytes
  } catch (error) {
    // Merged away meanwhile.
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
