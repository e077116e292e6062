// The folder of the local stack's data: servers of other users reach theirs, and nothing else.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDataDir } from '../../../deploy/local/stack/state-files.ts'

let parent: string
let umask: number
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'data-dir-'))
  umask = process.umask(0o077)
})
afterEach(() => {
  process.umask(umask)
  rmSync(parent, { recursive: true, force: true })
})

const modeOf = (path: string) => statSync(path).mode & 0o777

it('can be entered by others when it is new, whatever the umask, and keeps its folders private', () => {
  const dataDir = join(parent, 'data')
  openDataDir(dataDir)
  expect(modeOf(dataDir)).toBe(0o711)
  expect(modeOf(join(dataDir, 'clickhouse'))).toBe(0o700)
})

it('keeps its mode when it was there', () => {
  openDataDir(parent)
  expect(modeOf(parent)).toBe(0o700)
})
