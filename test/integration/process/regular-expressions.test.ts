/**
 * Every regular expression of the service takes linear time, as `recheck` proves, or is listed here
 * with the reason why it never matches foreign input. Only recheck's JavaScript is used:
 * package.json's overrides keep its Java and native programs away.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { check } from 'recheck'
import { parseAst } from 'vite'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
// Its package exports no entry for it; the type is that of the package's own check.
const { checkSync } = createRequire(import.meta.url)('recheck/lib/browser.js') as {
  checkSync: (...args: Parameters<typeof check>) => Awaited<ReturnType<typeof check>>
}

/**
 * Literals that are not linear, or cannot be proven to be, with the reason why they are harmless.
 */
const harmless: Record<string, string> = {
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
const builtAtRunTime: Record<string, string> = {
  'deploy/local/nats/nats-fetch.ts': "a key of the machine's own apt sources",
  'shared/core/http/event-schemas.ts': 'the six categories of signals',
  'shared/io/migrations/migration-files.ts': 'the number of a migration',
}

type Node = {
  type?: string
  regex?: { pattern: string; flags: string }
  callee?: { name?: string }
}

const literals = new Map<string, { pattern: string; flags: string; path: string }>()
const builders = new Set<string>()

function visit(node: unknown, path: string): void {
  if (typeof node !== 'object' || node === null) return
  const { type, regex, callee } = node as Node
  if (type === 'Literal' && regex !== undefined) {
    literals.set(`/${regex.pattern}/${regex.flags}`, { ...regex, path })
  }
  const calls = type === 'NewExpression' || type === 'CallExpression'
  if (calls && callee?.name === 'RegExp') builders.add(path)
  for (const value of Object.values(node)) visit(value, path)
}

for (const folder of ['services', 'shared', 'deploy']) {
  for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const path = `${folder}/${name}`
    visit(parseAst(readFileSync(join(root, path), 'utf8'), { lang: 'ts' }), path)
  }
}

/** Recheck's verdict on an expression. */
const judge = (pattern: string, flags: string) =>
  checkSync(pattern, flags, { checker: 'automaton', timeout: 30_000 })

it('the sources have regular expressions, and recheck detects a bad one', () => {
  expect(literals.size).toBeGreaterThan(50)
  const froze = String.raw`^(?:[A-Za-z][A-Za-z0-9-]*: ?[ -~]*\r\n)+\r\n$`
  expect(judge(froze, '').status).toBe('vulnerable')
})

it('every one is linear, or never matches foreign input', () => {
  const found = [...literals]
    .filter(([literal]) => !(literal in harmless))
    .map(([literal, { pattern, flags, path }]) => ({ literal, path, ...judge(pattern, flags) }))
    .filter(({ status }) => status !== 'safe')
  expect(found.map(({ literal, path, status }) => `${path}: ${literal} is ${status}`)).toEqual([])
})

it('none is built at run time from foreign text', () => {
  expect([...builders].sort()).toEqual(Object.keys(builtAtRunTime))
})

it('every expression listed as harmless exists', () => {
  expect(Object.keys(harmless).filter((literal) => !literals.has(literal))).toEqual([])
})
