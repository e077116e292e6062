/** The size of the pages: the first page and each further one are small enough to load quickly. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { pagesFolder } from '../../../services/console/serve/pages-folder.ts'

const kB = 1_000
const assets = join(pagesFolder, 'assets')
const read = (name: string) => readFileSync(join(assets, name), 'utf8')
const weights = new Map<string, number>()
const weighOne = (name: string): number => {
  const known = weights.get(name) ?? gzipSync(read(name), { level: 9 }).length
  weights.set(name, known)
  return known
}
const weigh = (names: Iterable<string>) => [...names].reduce((sum, name) => sum + weighOne(name), 0)

/** A script with all its static imports. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found
  found.add(name)
  for (const [, next] of read(name).matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) {
    withImports(next!, found)
  }
  return found
}

describe('a browser loads', () => {
  const document = readFileSync(join(pagesFolder, 'index.html'), 'utf8')
  const entries = [...document.matchAll(/<script type="module"[^>]*assets\/([^"]+\.js)"/g)].map(
    ([, name]) => name!,
  )
  const styles = [...document.matchAll(/assets\/([^"]+\.css)"/g)].map(([, name]) => name!)
  const first = new Set(entries.flatMap((name) => [...withImports(name)]))
  const pages = [...first].flatMap((name) =>
    [...read(name).matchAll(/import\(\s*["'`]\.\/([^"'`]+\.js)["'`]\s*\)/g)].map(
      ([, page]) => page!,
    ),
  )

  it('a first page of at most 190 kB of JavaScript and 20 kB of CSS, compressed', () => {
    expect(entries.length).toBe(1)
    expect(pages.length).toBeGreaterThanOrEqual(6)
    const start = Math.max(...pages.map((page) => weigh(withImports(page, new Set(first)))))
    expect(start).toBeLessThanOrEqual(190 * kB)
    expect(styles.length).toBe(1)
    expect(weigh(styles)).toBeLessThanOrEqual(20 * kB)
  })

  it('at most 40 kB more for each further page', () => {
    for (const page of pages) {
      const more = weigh(withImports(page, new Set(first))) - weigh(first)
      expect([page, more <= 40 * kB]).toEqual([page, true])
    }
  })

  it('a compressed copy of each script and style sheet', () => {
    const names = readdirSync(assets)
    const texts = names.filter((name) => /\.(js|css)$/.test(name))
    expect(texts.length).toBeGreaterThan(5)
    expect(texts.filter((name) => !names.includes(`${name}.br`))).toEqual([])
    expect(texts.filter((name) => !names.includes(`${name}.gz`))).toEqual([])
  })
})
