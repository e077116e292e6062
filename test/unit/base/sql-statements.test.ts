// Splits SQL files: servers receive each statement complete, and nothing else.
import { describe, expect, it } from 'vitest'
import { splitStatements } from '#shared/core/base/sql-statements.ts'

describe('a SQL file', () => {
  it('is split at semicolons; the last one is optional', () => {
    expect(splitStatements('select 1;\nselect 2')).toEqual(['select 1', 'select 2'])
    expect(splitStatements('select 1;\nselect 2;\n')).toEqual(['select 1', 'select 2'])
  })

  it('has no statements in comments, spaces and repeated semicolons', () => {
    expect(splitStatements('')).toEqual([])
    expect(splitStatements(' ;; -- one; two\n /* three; */ ;\n')).toEqual([])
  })

  it('keeps the comments around a statement, with semicolons in them', () => {
    const text = '-- first; really\ncreate table a (n Int8 /* ; */);\n-- second\nselect 1;'
    expect(splitStatements(text)).toEqual([
      '-- first; really\ncreate table a (n Int8 /* ; */)',
      '-- second\nselect 1',
    ])
  })

  it('is not split inside strings and quoted names, with any escape of quotes', () => {
    for (const literal of ["';'", "'it''s; fine'", "'a\\';b'", '";"', '"a\\";b"', '`;`']) {
      const statement = `select ${literal} as x`
      expect(splitStatements(`${statement};select 2`)).toEqual([statement, 'select 2'])
    }
  })

  it('keeps a minus and a division', () => {
    expect(splitStatements('select 3 - 2 / 1; select 4-1')).toEqual([
      'select 3 - 2 / 1',
      'select 4-1',
    ])
  })
})
