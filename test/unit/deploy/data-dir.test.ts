// The data folder of the local stack: servers under other users reach only their own folder.
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

it('is open to other users when it is new, under any umask, and keeps its folders private', () => {
  const dataDir = join(parent, 'data')
  openDataDir(dataDir)
  expect(modeOf(dataDir)).toBe(0o711)
  expect(modeOf(join(dataDir, 'clickhouse'))).toBe(0o700)
})

it('keeps its mode when it existed', () => {
  openDataDir(parent)
  expect(modeOf(parent)).toBe(0o700)
})
