// Finds the names in a statement with the engine's own lexer, so that strings and comments are
// distinguished from names as the engine does it. `EXPLAIN AST` omits `APPLY` and the `WHERE` of
// `SHOW`. A function can only come from a word, a quoted name, or a parameter for a name; all of
// these are checked.

import { quoteText } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import type { RefusedNames } from './analyst-functions.ts'
import type { ParsedQuery, Refusal } from './analyst-request.ts'

/** A token of the engine's lexer; `begin` and `end` are in bytes. */
export type Token = { begin: number; end: number; type: string }

const blank = new Set(['Whitespace', 'Comment'])
const plainName = /^[\w.-]*$/

/** The statement that returns the tokens of another. */
export function toTokensStatement(query: string): string {
  return `select tokenizeQuery(${quoteText(query)}) format JSONCompactColumns`
}

/** Parses the result of that statement. */
export function parseTokens(answer: string): Token[] {
  const columns = JSON.parse(answer) as Token[][][]
  return columns[0]?.[0] ?? []
}

/**
 * Checks a statement by its tokens. A name can also come from a parameter.
 * @returns null when it has no rejected name
 */
export function checkStatement(
  { query, parameters }: ParsedQuery,
  tokens: readonly Token[],
  refused: RefusedNames,
): Refusal | null {
  const bytes = Buffer.from(query)
  const end = tokens.at(-1)?.end ?? 0
  const broken = tokens.find(({ type }) => type.startsWith('Error'))
  if (broken || end !== bytes.length) return unreadable(broken?.begin ?? end)
  const words = tokens.filter(({ type }) => !blank.has(type))
  let takesNames = false
  for (const [at, { begin, end, type }] of words.entries()) {
    if (type !== 'BareWord' && type !== 'QuotedIdentifier') continue
    const text = bytes.toString('utf8', begin, end)
    const isQuoted = type === 'QuotedIdentifier'
    if (isQuoted && text.includes('\\')) return escaped(text)
    const name = (isQuoted ? unquote(text) : text).toLowerCase()
    const isMember = words[at - 1]?.type === 'Dot'
    const isCalled = words[at + 1]?.type === 'OpeningRoundBracket'
    if (name === 'settings' && !isQuoted && !isMember) return settingsClause
    if (name === 'identifier') takesNames = true
    if (refused.functions.has(name) && (!isMember || isCalled)) return denied(name)
    if (refused.tableFunctions.has(name) && isCalled) return denied(name)
  }
  return takesNames ? checkParameterNames(parameters, refused) : null
}

function checkParameterNames(
  parameters: ParsedQuery['parameters'],
  refused: RefusedNames,
): Refusal | null {
  for (const [name, value] of parameters) {
    if (!name.startsWith('param_')) continue
    const isRefused = value.split('.').some((part) => refused.functions.has(part.toLowerCase()))
    if (!plainName.test(value) || isRefused) return denied(value)
  }
  return null
}

// Quotes are one character, but typographic ones have several bytes.
const unquote = (text: string) => [...text].slice(1, -1).join('')

const denied = (name: string): Refusal => ({
  status: 403,
  code: 497,
  name: 'ACCESS_DENIED',
  text: `analyst: Not enough privileges to use the name ${name}`,
})

const escaped = (name: string): Refusal => ({
  status: 403,
  code: 497,
  name: 'ACCESS_DENIED',
  text: `analyst: A name cannot have a backslash here: ${name}`,
})

const unreadable = (at: number): Refusal => ({
  status: 400,
  code: 62,
  name: 'SYNTAX_ERROR',
  text: `Syntax error: failed at byte ${at}`,
})

// A SETTINGS clause in a subquery escapes the limits of the user who writes it.
const settingsClause: Refusal = {
  status: 403,
  code: 164,
  name: 'READONLY',
  text: "SETTINGS has no place in an analyst's query. Settings go in the address",
}
