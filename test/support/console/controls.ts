// What tests press and read on any page of the console.
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { findOverflow, findViolations } from './accessibility.ts'

/** What is shown, read and pressed on a page that may be another one later. */
export type Controls = ReturnType<typeof controlsOf>

/** @param getPage the page, which a test may replace */
export function controlsOf(getPage: () => Page) {
  const button = (name: string | RegExp) => getPage().getByRole('button', { name, exact: true })
  return {
    button,
    heading: (name: string) => getPage().getByRole('heading', { name, exact: true }),
    /** A button of the open dialog. */
    inDialog: (name: string) =>
      getPage().getByRole('dialog').getByRole('button', { name, exact: true }),
    /** The value beside a name in a dialog that shows secrets. */
    readValue: async (name: string): Promise<string> => {
      const line = getPage().getByRole('region', { name, exact: true })
      return (await line.locator('code').textContent()) ?? ''
    },
    /** The cells of a table, without its head. */
    readTable: async (name: string): Promise<string[][]> => {
      const rows = getPage().getByRole('region', { name, exact: true }).getByRole('row')
      await rows.nth(1).waitFor()
      const texts = await rows.allInnerTexts()
      return texts.slice(1).map((text) => text.split('\t').map((cell) => cell.trim()))
    },
    /** axe finds no fault in either theme, and 320 px are enough. */
    expectNoFault: async (page = getPage()): Promise<void> => {
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
    },
  }
}

/** Waits for what a change leads to, and confirms with the password first if it is asked for. */
export async function confirmAs(page: Page, password: string, done: Locator): Promise<void> {
  const prompt = page.getByRole('heading', { name: 'Confirm that it is you' })
  await done.or(prompt).first().waitFor()
  if (await prompt.isVisible()) {
    await page.getByRole('dialog').last().getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  }
  await done.first().waitFor()
}
