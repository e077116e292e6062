// Texts in the terminal: what people and clients typed cannot steer it or add a row.
import { describe, expect, it } from 'vitest'
import { toFields, toTable } from '../../../services/console/cli/tables.ts'

const hostile = 'a\u001b[2J\u009b1m\n\u202eb'
const visible = 'a\\u{1b}[2J\\u{9b}1m\\u{a}\\u{202e}b'

describe('texts that others typed', () => {
  it('are escaped in a table, whose columns stay aligned', () => {
    expect(
      toTable(
        ['NAME', 'ROLE'],
        [
          [hostile, 'viewer'],
          ['é', 'admin'],
        ],
      ).split('\n'),
    ).toEqual([
      `${'NAME'.padEnd(visible.length)}  ROLE`,
      `${visible}  viewer`,
      `${'é'.padEnd(visible.length)}  admin`,
    ])
  })

  it('are escaped in fields', () => {
    expect(toFields({ name: hostile, score: 7, note: null, left: undefined })).toBe(
      `name   ${visible}\nscore  7\nnote   -`,
    )
  })
})
