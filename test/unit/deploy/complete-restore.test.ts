// What the next start of the local stack restores, and what it must not.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { toClickhouseBackup } from '#shared/io/backup/backup-folder.ts'
import { completeClickhouse } from '../../../deploy/local/stack/complete-restore.ts'

it('a backup that was interrupted is removed, never restored over the present data', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'di-restore-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const interrupted = toClickhouseBackup(dataDir, 'scratch')
  mkdirSync(interrupted, { recursive: true })
  // Where nothing listens: a restore would be rejected.
  expect(await completeClickhouse(dataDir, 'http://127.0.0.1:1/device_intelligence')).toBe(false)
  expect(existsSync(interrupted)).toBe(false)
  mkdirSync(toClickhouseBackup(dataDir, 'restore'))
  await expect(
    completeClickhouse(dataDir, 'http://127.0.0.1:1/device_intelligence'),
  ).rejects.toThrow()
})
