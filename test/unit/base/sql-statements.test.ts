// Cutting SQL files: what servers get is each statement whole, and nothing that is none.
import { describe, expect, it } from 'vitest'
import { splitStatements } from '#shared/core/base/sql-statements.ts'

describe('a SQL file', () => {
  it('is cut at semicolons, the last of which may be missing', () => {
    expect(splitStatements('select 1;\nselect 2')).toEqual(['select 1', 'select 2'])
    expect(splitStatements('select 1;\nselect 2;\n')).toEqual(['select 1', 'select 2'])
  })

  it('has no statements in comments, spaces and stray semicolons', () => {
    expect(splitStatements('')).toEqual([])
    expect(splitStatements(' ;; -- one; two\n /* three; */ ;\n')).toEqual([])
  })

  it('keeps a statement with the comments around it, semicolons in them included', () => {
    const text = '-- first; really\ncreate table a (n Int8 /* ; */);\n-- second\nselect 1;'
    expect(splitStatements(text)).toEqual([
      '-- first; really\ncreate table a (n Int8 /* ; */)',
      '-- second\nselect 1',
    ])
  })

  it('is not cut inside strings and quoted names, however they escape their quotes', () => {
    for (const literal of ["';'", "'it''s; fine'", "'a\\';b'", '";"', '"a\\";b"', '`;`']) {
      const statement = `select ${literal} as x`
      expect(splitStatements(`${statement};select 2`)).toEqual([statement, 'select 2'])
    }
  })

  it('is not confused by a minus or a division', () => {
    expect(splitStatements('select 3 - 2 / 1; select 4-1')).toEqual([
      'select 3 - 2 / 1',
      'select 4-1',
    ])
  })
})
