// The stage of deploy/Dockerfile that builds the console's pages has all that they are built from:
// the same files and command in a folder with nothing else, beside the packages of this project.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const projectDir = join(import.meta.dirname, '../../..')
const read = (file: string) => readFileSync(join(projectDir, file), 'utf8')

/** The instructions of a stage, in order. */
function readStage(name: string): string[] {
  const stages = read('deploy/Dockerfile').split(/^FROM /m)
  const stage = stages.find((text) => text.split('\n')[0]?.endsWith(` AS ${name}`))!
  return stage.split('\n').filter((line) => /^(COPY|RUN) /.test(line))
}

test("the console's pages are built from what their stage of the image copies", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'di-pages-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const left = ['services/console/web/dist']
  for (const path of left) expect(read('.dockerignore')).toContain(`\n${path}`)
  let built = 0
  for (const line of readStage('pages')) {
    const [instruction, ...words] = line.split(' ')
    if (instruction === 'COPY') {
      for (const source of words.slice(0, -1)) {
        cpSync(join(projectDir, source), join(folder, source), {
          recursive: true,
          filter: (path) => !left.some((one) => path.startsWith(join(projectDir, one))),
        })
      }
    } else if (words[0] === 'npm') {
      symlinkSync(join(projectDir, 'node_modules'), join(folder, 'node_modules'))
    } else {
      await run(process.execPath, words.slice(1), { cwd: folder })
      built++
    }
  }
  expect(built).toBe(1)
  expect(existsSync(join(folder, 'services/console/web/dist/index.html'))).toBe(true)
})
