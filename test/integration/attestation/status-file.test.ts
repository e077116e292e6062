// The status list in a file: replaced, broken, huge and missing, as it is in force for events.
import { mkdtempSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { hashSerial } from '#shared/core/installs/evidence-signals.ts'
import { openStatusFile, type StatusFile } from '#shared/io/attestation/status-file.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'

let folder: string
let file: string
let status: StatusFile | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'status-'))
  file = join(folder, 'status.json')
})
afterEach(async () => {
  await status?.close()
  rmSync(folder, { recursive: true })
})

const toList = (...serials: string[]) =>
  JSON.stringify({
    entries: Object.fromEntries(
      serials.map((serial) => [serial, { status: 'REVOKED', reason: 'KEY_COMPROMISE' }]),
    ),
  })

/** Replaces the file at once, as operators should. */
function replace(content: string): void {
  writeFileSync(`${file}.new`, content)
  renameSync(`${file}.new`, file)
}

let aheadMs = 0
function open() {
  aheadMs = 0
  const metrics = createMetrics('test')
  const wallMs = () => Date.now() + aheadMs
  status = openStatusFile({ file, log: testLog, metrics, wallMs, everyMs: 20 })
  const read = async (name: string) => {
    const { values } = await metrics.registry.getSingleMetric(name)!.get()
    return values
  }
  return { status, read }
}
const has = (serial: string) => status!.revoked()?.has(hashSerial(serial))

it('is read at the start, and again when it is replaced', async () => {
  replace(toList('a1b2', '123'))
  const { read } = open()
  await until('the list is in force', () => has('a1b2'))
  expect([has('123'), has('c3d4'), status!.warning()]).toEqual([true, false, null])
  replace(toList('c3d4'))
  await until('the next one is in force', () => has('c3d4'))
  expect([has('a1b2'), status!.revoked()!.size]).toEqual([false, 1])
  expect(await read('di_attestation_status_entries')).toMatchObject([{ value: 1 }])
})

it.each([
  ['is cut off', () => truncateSync(file, 30), 'is not the list that Android publishes'],
  [
    'is another document',
    () => replace('{"serials":[]}'),
    'is not the list that Android publishes',
  ],
  ['is empty', () => replace(''), 'is not the list that Android publishes'],
  ['is too large', () => truncateSync(file, 65 * 1024 * 1024), 'is larger than 64 MiB'],
  ['is removed', () => rmSync(file), 'cannot be read'],
])('that %s leaves the one before it in force, with a warning', async (_, breakIt, warning) => {
  replace(toList('a1b2', 'c3d4'))
  const { read } = open()
  await until('the list is in force', () => has('a1b2'))
  breakIt()
  await until('the fault is seen', () => status!.warning() !== null)
  expect(status!.warning()).toBe(warning)
  expect([has('a1b2'), has('c3d4'), status!.revoked()!.size]).toEqual([true, true, 2])
  const faults = await read('di_attestation_status_faults_total')
  expect(faults.filter(({ value }) => value > 0)).toMatchObject([{ value: 1 }])
  replace(toList('ffff'))
  await until('the whole one is in force', () => has('ffff'))
  expect(status!.warning()).toBeNull()
})

it('may come after the start; until then nothing is known to be revoked', async () => {
  const { read } = open()
  await until('the fault is seen', () => status!.warning() === 'cannot be read')
  expect(status!.revoked()).toBeNull()
  // No age of a list that is not there: 0 would look fresh.
  expect(await read('di_attestation_status_age_seconds')).toEqual([])
  replace(toList('a1b2'))
  await until('the list is in force', () => has('a1b2'))
})

it('has an age, of which operators are warned after a week', async () => {
  replace(toList('a1b2'))
  const dayMs = 86_400_000
  const writtenMs = Date.now() - 2 * dayMs
  utimesSync(file, writtenMs / 1_000, writtenMs / 1_000)
  const { read } = open()
  await until('the list is in force', () => has('a1b2'))
  const [age] = await read('di_attestation_status_age_seconds')
  expect(age!.value).toBeGreaterThan(2 * 86_399)
  expect(age!.value).toBeLessThan(2 * 86_401 + 600)
  expect(status!.warning()).toBeNull()
  aheadMs = 6 * dayMs
  expect(status!.warning()).toBe('is older than a week')
})
