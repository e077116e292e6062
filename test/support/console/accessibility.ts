// The violations that axe finds on a rendered page in both themes, and whether the page fits a
// narrow screen.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Violation = { id: string; help: string; html: string }

/** The rules that judge colours: all others find the same in both themes. */
const colorRules = ['color-contrast', 'link-in-text-block']

/**
 * Ways in which texts are coloured that were judged in both themes, by this process. Colours cost
 * two thirds of a check, and most pages show what others have shown.
 */
const judged = new Set<string>()

/**
 * Finds the texts of a page, keeps them for `judgeColors`, and returns in which ways they are
 * coloured: by what a style sheet can tell of an element and of all around it.
 */
const collectTexts = `(() => {
  const states = [
    ...['disabled', 'aria-invalid', 'aria-current'],
    ...['aria-selected', 'aria-disabled', 'data-state'],
  ]
  const names = 'bg|text|font|opacity|brightness|placeholder|accent'
  const coloring = new RegExp('(^|:)(' + names + ')-|^cm-|^u-|[^\\x00-\\x7f]|skeleton')
  const known = new WeakMap()
  const tell = (element) => {
    if (element === null) return ''
    if (known.has(element)) return known.get(element)
    const tokens = [...element.classList].filter((token) => coloring.test(token))
    const state = states.filter((name) => element.hasAttribute(name))
      .map((name) => name + '=' + element.getAttribute(name))
    const style = element.getAttribute('style') ?? ''
    if (/color|opacity|background/.test(style)) state.push(style)
    const own = [...tokens, ...state].join(' ')
    const around = tell(element.parentElement)
    const told = own === '' ? around : around + '>' + own
    known.set(element, told)
    return told
  }
  const texts = new Map()
  const isText = ({ nodeType, textContent }) =>
    nodeType === Node.TEXT_NODE && textContent.trim() !== ''
  for (const element of document.body.querySelectorAll('*')) {
    const { localName } = element
    const isField = localName === 'input' || localName === 'textarea' || localName === 'select'
    if (!isField && ![...element.childNodes].some(isText)) continue
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue
    const isInText = localName === 'a' && [...element.parentElement.childNodes].some(isText)
    const way = localName + (isInText ? '+' : '') + tell(element)
    texts.set(way, [...(texts.get(way) ?? []), element])
  }
  globalThis.textsOfCheck = texts
  return [...texts.keys()]
})()`

/** Runs the other rules on the whole page. */
const judgeRest = `axe.run({
  resultTypes: ['violations'],
  rules: ${JSON.stringify(Object.fromEntries(colorRules.map((id) => [id, { enabled: false }])))},
}).then(({ violations }) =>
  violations.map(({ id, help, nodes }) => ({ id, help, html: nodes[0].html })))`

/** Judges texts of these ways; `seen` has those that were not behind something else. */
const judgeColors = (ways: readonly string[]) => `(async () => {
  const ways = ${JSON.stringify(ways)}
  const wayOf = new Map(
    ways.flatMap((way) => textsOfCheck.get(way).slice(0, 3).map((one) => [one, way])),
  )
  const { violations, passes } = await axe.run([...wayOf.keys()], {
    elementRef: true,
    runOnly: ${JSON.stringify(colorRules)},
  })
  return {
    violations: violations.map(({ id, help, nodes }) => ({ id, help, html: nodes[0].html })),
    seen: passes.flatMap(({ nodes }) => nodes.map(({ element }) => wayOf.get(element))),
  }
})()`

/** @returns one line for each violation, with the element */
export async function findViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe)
  const found: string[] = []
  const note = (theme: string, violations: readonly Violation[]) => {
    for (const { id, help, html } of violations) {
      found.push(`${theme}: ${id}: ${help}: ${html.slice(0, 200)}`)
    }
  }
  note('light', await page.evaluate<Violation[]>(judgeRest))
  const ways = (await page.evaluate<string[]>(collectTexts)).filter((way) => !judged.has(way))
  if (ways.length === 0) return found
  const seen: Set<string>[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    type Judged = { violations: Violation[]; seen: string[] }
    const result = await page.evaluate<Judged>(judgeColors(ways))
    note(colorScheme, result.violations)
    seen.push(new Set(result.seen))
  }
  await page.emulateMedia({ colorScheme: 'light' })
  for (const way of ways) if (seen.every((ofTheme) => ofTheme.has(way))) judged.add(way)
  return found
}

/** How much wider the document is than a screen of 320 px; 0 when it fits. */
export async function findOverflow(page: Page): Promise<number> {
  const before = page.viewportSize()
  await page.setViewportSize({ width: 320, height: 640 })
  const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  if (before !== null) await page.setViewportSize(before)
  return over as number
}
