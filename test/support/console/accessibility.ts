// The violations that axe finds on a rendered page in both themes, and whether the page fits a
// narrow screen.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type AxeResult = { violations: { id: string; help: string; nodes: { html: string }[] }[] }
type Axe = { run: (options: AxeOptions) => Promise<AxeResult> }
type AxeOptions = { resultTypes: string[]; runOnly?: string[] }

/** The rules that judge colours: all others find the same in both themes. */
const colorRules = ['color-contrast', 'link-in-text-block']

/** @returns one line for each violation, with the element */
export async function findViolations(page: Page): Promise<string[]> {
  const found: string[] = []
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const options = {
      resultTypes: ['violations'],
      ...(colorScheme === 'dark' ? { runOnly: colorRules } : {}),
    }
    const { violations } = await page.evaluate((chosen) => {
      const { axe: checker } = globalThis as unknown as { axe: Axe }
      return checker.run(chosen)
    }, options)
    for (const { id, help, nodes } of violations) {
      found.push(`${colorScheme}: ${id}: ${help}: ${nodes[0]?.html.slice(0, 200)}`)
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
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
