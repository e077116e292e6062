// Builds the console's pages when they are older than their sources. The build is a separate
// process, because it needs more memory than everything else in this one.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { arePagesFresh } from '../../../services/console/serve/build-pages.ts'
import { findPagesFault } from '../local-packages.ts'
import type { Screen } from './screen.ts'

const builder = fileURLToPath(
  new URL('../../../services/console/serve/build-main.ts', import.meta.url),
)

/** A failed build is reported; only the pages do not work without it. */
export async function ensureConsolePages(screen: Screen, projectDir: string): Promise<void> {
  if (arePagesFresh()) return
  const fault = findPagesFault(projectDir)
  if (fault !== null) return screen.note('pages', `the console has no pages: ${fault}`)
  const since = performance.now()
  try {
    await promisify(execFile)(process.execPath, [builder])
    screen.step('pages', 'built', since)
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    screen.note('pages', `the console's pages could not be built\n${stderr || message}`)
  }
}
