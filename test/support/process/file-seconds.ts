/**
 * How long each file of tests took, as a run recorded it, and the order that follows: the longest
 * first, because a long one that started last would run alone. A new clone has no times of its own,
 * so the record is in the repository; `npm run record:seconds` writes it anew.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const recordFile = join(root, 'test/seconds.json')
/** The order of shorter ones changes nothing. */
const secondsMin = 3

/** Seconds by the file's path from the project's folder. */
type Record = { [path: string]: number }

const toPath = (moduleId: string): string => relative(root, moduleId)
const readRecord = (): Record => JSON.parse(readFileSync(recordFile, 'utf8')) as Record

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const record = readRecord()
    const toSeconds = ({ moduleId }: TestSpecification) => record[toPath(moduleId)] ?? 0
    return (await super.sort(files)).sort((a, b) => toSeconds(b) - toSeconds(a))
  }
}

/** Writes the seconds of this run's files, and keeps those of others that are still there. */
export class RecordSeconds implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const record = readRecord()
    for (const path of Object.keys(record)) if (!existsSync(join(root, path))) delete record[path]
    for (const module of modules) {
      const { collectDuration, duration } = module.diagnostic()
      const seconds = Math.round((collectDuration + duration) / 1000)
      const path = toPath(module.moduleId)
      if (seconds < secondsMin) delete record[path]
      else record[path] = seconds
    }
    const sorted = Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))
    writeFileSync(recordFile, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
  }
}
