// Which functions and names analysts of the local stack may use. The categories and tokens in these
// tests are output of the engine.
import { describe, expect, it } from 'vitest'
import { toRefusedNames } from '../../../deploy/local/clickhouse/analyst-functions.ts'
import { checkStatement, parseTokens } from '../../../deploy/local/clickhouse/analyst-statement.ts'

const toFunction = (name: string, categories: string, alias_to = '', is_aggregate = 0) => ({
  name,
  alias_to,
  categories,
  is_aggregate,
})
const refused = toRefusedNames(
  [
    toFunction('file', 'Other'),
    toFunction('plus', 'Arithmetic'),
    toFunction('editDistance', 'String'),
    toFunction('levenshteinDistance', '', 'editDistance'),
    toFunction('lcase', '', 'lower'),
    toFunction('lower', 'String'),
    toFunction('format', 'String Replacement'),
    toFunction('sum', 'Aggregate Functions', '', 1),
    toFunction('readMind', 'A category of the future'),
  ],
  ['file', 'url', 'numbers', 'format', 'tableOfTheFuture'],
)

describe('rejected names', () => {
  it('are those of every forbidden category, of costly functions, and their aliases', () => {
    expect([...refused.functions].sort()).toEqual([
      'editdistance',
      'file',
      'levenshteindistance',
      'readmind',
    ])
    expect([...refused.tableFunctions].sort()).toEqual(['file', 'tableofthefuture', 'url'])
  })
})

/** Lexes as far as these statements need it. */
function judge(query: string, parameters: [string, string][] = []) {
  const kinds: [string, RegExp][] = [
    ['Whitespace', /^\s+/],
    ['BareWord', /^[a-z_]\w*/i],
    ['QuotedIdentifier', /^`[^`]*`/],
    ['StringLiteral', /^'[^']*'/],
    ['Dot', /^\./],
    ['OpeningRoundBracket', /^\(/],
    ['Other', /^[^\w\s'`.]/],
    ['ErrorWrongNumber', /^\d/],
  ]
  const tokens = []
  for (let begin = 0; begin < query.length; ) {
    const [type, pattern] = kinds.find(([, one]) => one.test(query.slice(begin)))!
    const end = begin + pattern.exec(query.slice(begin))![0].length
    tokens.push({ begin, end, type })
    begin = end
  }
  const read = parseTokens(JSON.stringify([[tokens]]))
  return checkStatement({ query, parameters }, read, refused)?.name ?? null
}

describe('a statement', () => {
  it.each([
    ['select plus(a, b), lower(c), sum(d) from numbers(a)', null],
    ['select file(a)', 'ACCESS_DENIED'],
    ['select arrayMap(file, a)', 'ACCESS_DENIED'],
    ['select `File` (a)', 'ACCESS_DENIED'],
    ['select `f\\x69le`(a)', 'ACCESS_DENIED'],
    ['select signals.root.file from events', null],
    ['select signals.root.file (a) from events', 'ACCESS_DENIED'],
    ["select 'file(a)', 'settings' from events", null],
    ['select a from url(b)', 'ACCESS_DENIED'],
    ['select url from events', null],
    ['select a from events settings b', 'READONLY'],
    ['select name from system.settings', null],
    ['select `settings` from events', null],
    ['select a 1', 'SYNTAX_ERROR'],
  ])('%s: %s', (query, name) => {
    expect(judge(query)).toBe(name)
  })

  it('may be a query parameter, unless the value is a rejected name', () => {
    const query = 'select arrayMap({f:Identifier}, a)'
    expect(judge(query, [['param_f', 'lower']])).toBeNull()
    expect(judge(query, [['param_f', 'a.file']])).toBe('ACCESS_DENIED')
    expect(judge(query, [['param_f', 'f\\x69le']])).toBe('ACCESS_DENIED')
    expect(judge('select {f:String}', [['param_f', 'file']])).toBeNull()
  })

  it('is rejected when the engine did not tokenize all of it', () => {
    const tokens = [{ begin: 0, end: 6, type: 'BareWord' }]
    const statement = { query: 'select file(a)', parameters: [] }
    expect(checkStatement(statement, tokens, refused)?.name).toBe('SYNTAX_ERROR')
  })
})
