// Which backups of servers are removed from their volume.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  removeInterruptedBackups,
  removeOldBackups,
  writeBegun,
  writeServerBackup,
} from '#shared/io/backup/server-backups.ts'

let parent: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'di-backups-'))
  mkdirSync(join(parent, 'lost+found'))
  writeFileSync(join(parent, 'file'), '')
})
afterEach(() => rmSync(parent, { recursive: true }))

const offsets = { undecided_from: 1, further_streams: [] }

/** @param madeAt null for one that is not complete */
async function addBackup(name: string, madeAt: string | null): Promise<string> {
  const folder = join(parent, name)
  mkdirSync(folder)
  await writeBegun(folder, { sequences: {}, offsets })
  const manifest = { version: '1', clickhouse: 'File()', messages: {}, ...offsets }
  if (madeAt !== null) await writeServerBackup(folder, { ...manifest, made_at: madeAt })
  return folder
}

const remaining = () => readdirSync(parent).sort()

it('the newest complete ones stay, and everything that is not one', async () => {
  await addBackup('a', '2026-01-03T00:00:00.000Z')
  await addBackup('b', '2026-01-01T00:00:00.000Z')
  await addBackup('c', '2026-01-02T00:00:00.000Z')
  await addBackup('running', null)
  await removeOldBackups(join(parent, 'a'), 2)
  expect(remaining()).toEqual(['a', 'c', 'file', 'lost+found', 'running'])
})

it('another that was interrupted goes after a day, this one and a complete one do not', async () => {
  const hoursAgo = (hours: number) => Date.now() / 1_000 - hours * 3_600
  for (const [name, madeAt, hours] of [
    ['complete', '2026-01-03T00:00:00.000Z', 25],
    ['interrupted', null, 25],
    ['running', null, 23],
    ['this', null, 30],
  ] as const) {
    const folder = await addBackup(name, madeAt)
    utimesSync(folder, hoursAgo(hours), hoursAgo(hours))
  }
  await removeInterruptedBackups(join(parent, 'this'))
  expect(remaining()).toEqual(['complete', 'file', 'lost+found', 'running', 'this'])
})
