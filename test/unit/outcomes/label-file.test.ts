import { describe, expect, test } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { toCsvRow } from '#shared/core/http/csv.ts'
import { readLabelFile } from '../../../services/console/cli/outcomes/label-file.ts'

const nowMs = Date.UTC(2026, 5, 1)
const check = { nowMs, codes: new Map([['mule', 'fraud' as const]]) }
const read = (...lines: string[]) => readLabelFile(lines.join('\n'), check)

describe('a file of labels', () => {
  test('is read with quotes, line ends within them, empty cells and any order of columns', () => {
    const { labels, faults } = read(
      '\ufefflabel,device_id,user_id,occurred_at,amount,currency,external_id,note,covered_days',
      'chargeback,phone-1,,2026-03-01,129.90,EUR,cb-1,"said ""no""',
      'twice",7',
      '',
      'legitimate,,u-1,,,,,,',
    )
    expect(faults).toEqual([])
    expect(labels).toEqual([
      {
        subject: { device_id: 'phone-1' },
        label: 'chargeback',
        occurred_at: '2026-03-01',
        amount: '129.90',
        currency: 'EUR',
        external_id: 'cb-1',
        note: 'said "no"\ntwice',
        covered_days: 7,
      },
      { subject: { user_id: 'u-1' }, label: 'legitimate' },
    ])
  })

  test('may have semicolons and the line ends of Windows, as Excel writes it', () => {
    const { labels, faults } = readLabelFile('label;user_id\r\nfraud;u;1\r\nfraud;u2\r\n', check)
    expect(faults).toEqual([{ line: 2, column: '', message: 'has 3 cells; the header has 2' }])
    expect(labels).toEqual([{ subject: { user_id: 'u2' }, label: 'fraud' }])
  })

  test('has every bad line named, with its column', () => {
    const ahead = new Date(nowMs + 3 * dayMs).toISOString()
    const { labels, faults } = read(
      'label,device_id,user_id,occurred_at,amount,currency,note',
      'fraud,d1,,,,,"two',
      'lines"',
      'fraud,unknown,,,,,',
      'Fraud,d1,,,,,',
      'fraud,d1,u1,,,,',
      'fraud,,,,,,',
      `fraud,d1,,${ahead},,,`,
      'fraud,d1,,1970-01-01,,,',
      'fraud,d1,,,"1,50",EUR,',
      'fraud,d1,,,1.5,,',
      'fraud,d1',
      'legit,d1,,,,,',
    )
    expect(labels).toHaveLength(1)
    expect(faults.map(({ line, column }) => [line, column])).toEqual([
      [4, 'device_id'],
      [5, 'label'],
      [6, 'subject'],
      [7, 'subject'],
      [8, 'occurred_at'],
      [9, 'occurred_at'],
      [10, 'amount'],
      [11, 'currency'],
      [12, ''],
      [13, 'label'],
    ])
  })

  test('has the ids that our own CSV has, and names those that a spreadsheet damaged', () => {
    const ids = ['+49-1', '=x', '-1', '@a', '0049', "'quoted", '4.5']
    for (const form of ['plain', 'excel'] as const) {
      const rows = ids.map((id) => toCsvRow(['mule', id], form).trimEnd())
      const { labels, faults } = read('label,user_id', ...rows)
      expect(faults).toEqual([])
      expect(labels.map(({ subject }) => subject)).toEqual(ids.map((user_id) => ({ user_id })))
    }
    const { labels, faults } = read('label,user_id', 'mule,4.68769E+17', 'mule,"=A1&""x"""')
    expect(labels).toEqual([])
    expect(faults.map(({ line, column }) => [line, column])).toEqual([
      [2, 'user_id'],
      [3, 'user_id'],
    ])
  })

  test('may have the empty cells and rows that spreadsheets leave behind', () => {
    const { labels, faults } = read('label,user_id,,', 'fraud,u1,,,,', ',,,', ',,')
    expect(faults).toEqual([])
    expect(labels).toEqual([{ subject: { user_id: 'u1' }, label: 'fraud' }])
  })

  test('is refused without the columns that it needs, and with others', () => {
    const columns = (header: string) => read(header, 'x').faults.map(({ column }) => column)
    expect(columns('label,lable,user_id')).toEqual(['lable'])
    expect(columns('label,user_id,user_id')).toEqual(['user_id'])
    expect(columns('user_id')).toEqual(['label'])
    expect(columns('label')).toEqual(['subject'])
    expect(read('').faults).toEqual([{ line: 1, column: '', message: 'is empty' }])
  })

  test('that breaks off in a quote is named by the line of its row', () => {
    const { labels, faults } = read('label,user_id', 'fraud,u1', 'fraud,"u2', 'fraud,u3')
    expect(labels).toHaveLength(1)
    expect(faults).toMatchObject([{ line: 3 }])
  })
})
