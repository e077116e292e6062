/** Which folders the embedded ClickHouse marks, and when, on a disk without a journal. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { spreadParts, toDevice } from '../../../deploy/local/clickhouse/spread-parts.ts'
import { until } from '../../support/process/until.ts'

let dir: string
let end: () => void
let calls: string[][]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'di-spread-'))
  calls = []
  end = () => undefined
})
afterEach(() => {
  end()
  rmSync(dir, { recursive: true })
})

const table = (name: string) => join(dir, 'store', name.slice(0, 3), name)
const begin = (withoutJournal: boolean) => {
  end = spreadParts(dir, {
    lacksJournal: () => withoutJournal,
    mark: (folders) => calls.push([...folders]),
  })
}

it('marks the existing tables, and each new one once', async () => {
  mkdirSync(table('aaa-1'), { recursive: true })
  begin(true)
  expect(calls).toEqual([[table('aaa-1')]])
  mkdirSync(table('bbb-2'), { recursive: true })
  await until('the new one is marked', () => calls.length === 2)
  expect(calls[1]).toEqual([table('bbb-2')])
  rmSync(table('aaa-1'), { recursive: true })
  mkdirSync(table('ccc-3'), { recursive: true })
  await until('the next one is marked', () => calls.length === 3)
  expect(calls[2]).toEqual([table('ccc-3')])
})

it('marks nothing on other disks', async () => {
  mkdirSync(table('aaa-1'), { recursive: true })
  begin(false)
  mkdirSync(table('bbb-2'), { recursive: true })
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect(calls).toEqual([])
})

it.each([
  [65_024, '254:0'],
  [1_792, '7:0'],
  [66_309, '259:5'],
  [1_114_880, '259:256'],
])('splits device number %i', (dev, expected) => {
  expect(toDevice(dev)).toBe(expected)
})
