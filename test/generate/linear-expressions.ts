/**
 * Every regular expression of the sources that `recheck` has proven to take linear time. A proof
 * depends on nothing but the expression, and some take seconds, so they are recorded: only an
 * expression that is not in the record is judged. Only recheck's JavaScript is used: package.json's
 * overrides keep its Java and native programs away.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { check } from 'recheck'
import { parseAst } from 'vite'

const root = join(import.meta.dirname, '../..')
const require = createRequire(import.meta.url)
// Its package exports no entry for it; the type is that of the package's own check.
const { checkSync } = require('recheck/lib/browser.js') as {
  checkSync: (...args: Parameters<typeof check>) => Awaited<ReturnType<typeof check>>
}

/**
 * Literals that are not linear, or cannot be proven to be, with the reason why they are harmless.
 */
export const harmless: Record<string, string> = {
  '/^deb\\s+(\\[[^\\]]*\\]\\s+)?(\\S+)\\s+(\\S+)\\s+(.+)$/': "the machine's own apt sources",
  '/\\/+$/': "CONSOLE_URL, from the operator's own environment",
  '/^\\/+|\\/+$/g': 'CLICKHOUSE_URL, from the configuration',
  '/=+$/': 'credentials that the service made itself',
  '/^[a-z][a-z0-9+.-]*:(?=\\/\\/)/i': 'NATS_URL, from the configuration',
  '/^(?:create table if not exists|alter table) (\\w+)/m': 'the SQL files of the schema',
  '/<(script|style)\\b.*?(?:<\\/\\1\\s*>|$)/gis': 'the first 4,000 characters of an answer',
  '/(?<=failed at position )\\d+/': "the engine's message, at most 2,000 characters",
  '/(?<=\\(line )\\d+(?=, col )/': "the engine's message, at most 2,000 characters",
  '/EADDRINUSE.*:(\\d+)/': 'the last lines of a process of our own',
  '/^export (?:type )?\\{([^}]*)\\}/gm': 'the sources of the client package',
  '/\\w+(?= *(?:,|$))/g': 'the sources of the client package',
  '/^Answer: ([\\s\\S]+?)\\n(?=Do:)/m': 'files of the cookbook',
  '/^Do: ([\\s\\S]+?)(?=\\nParameters:|$(?![\\s\\S]))/m': 'files of the cookbook',
}

/** Expressions that are built at run time, and their contents. */
export const builtAtRunTime: Record<string, string> = {
  'deploy/local/nats/nats-fetch.ts': "a key of the machine's own apt sources",
  'shared/core/http/event-schemas.ts': 'the six categories of signals',
  'shared/core/identity/install-traits.ts': 'the length of a hash',
  'shared/core/identity/sent-device-schema.ts': 'the greatest length of a name',
  'shared/core/identity/sent-identifiers.ts': 'the greatest length of a name',
  'shared/core/outcomes/money.ts': 'the greatest number of digits',
  'shared/io/migrations/migration-files.ts': 'the number of a migration',
}

type Node = {
  type?: string
  regex?: { pattern: string; flags: string }
  callee?: { name?: string }
}

type Expressions = {
  /** By their text, with where one is. */
  literals: Map<string, { pattern: string; flags: string; path: string }>
  /** Files that build expressions. */
  builders: Set<string>
}

function visit(node: unknown, path: string, { literals, builders }: Expressions): void {
  if (typeof node !== 'object' || node === null) return
  const { type, regex, callee } = node as Node
  if (type === 'Literal' && regex !== undefined) {
    literals.set(`/${regex.pattern}/${regex.flags}`, { ...regex, path })
  }
  const calls = type === 'NewExpression' || type === 'CallExpression'
  if (calls && callee?.name === 'RegExp') builders.add(path)
  for (const value of Object.values(node)) visit(value, path, { literals, builders })
}

/** The expressions of the sources. */
export function readExpressions(): Expressions {
  const found: Expressions = { literals: new Map(), builders: new Set() }
  for (const folder of ['services', 'shared', 'deploy']) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue
      const path = `${folder}/${name}`
      visit(parseAst(readFileSync(join(root, path), 'utf8'), { lang: 'ts' }), path, found)
    }
  }
  return found
}

/** Recheck's verdict on an expression. */
export const judge = (pattern: string, flags: string) =>
  checkSync(pattern, flags, { checker: 'automaton', timeout: 30_000 })

export const recordPath = 'test/generate/linear-expressions.json'

/** The recorded expressions, of this version of recheck. */
export type LinearExpressions = { recheck: string; linear: string[] }

const recheckVersion = (): string =>
  (
    JSON.parse(readFileSync(join(root, 'node_modules/recheck/package.json'), 'utf8')) as {
      version: string
    }
  ).version

/** @param recorded the text of the record; null without one */
export function readRecord(recorded: string | null): LinearExpressions {
  const none = { recheck: recheckVersion(), linear: [] }
  if (recorded === null) return none
  const record = JSON.parse(recorded) as LinearExpressions
  return record.recheck === none.recheck ? record : none
}

/** The record with what is new, and without what is gone. */
export function renderLinearExpressions(recorded: string | null): string {
  const known = new Set(readRecord(recorded).linear)
  const linear = [...readExpressions().literals]
    .filter(([literal]) => !(literal in harmless))
    .filter(([literal, { pattern, flags }]) => {
      return known.has(literal) || judge(pattern, flags).status === 'safe'
    })
    .map(([literal]) => literal)
    .sort()
  return `${JSON.stringify({ recheck: recheckVersion(), linear }, null, 2)}\n`
}
