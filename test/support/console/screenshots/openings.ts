// What a page shows after one click: tabs, dialogs, menus and parts that open.
import type { Page } from 'playwright-core'

/** Buttons that are tried, at most, and as many tabs. */
const most = 24

/** What is open now: dialogs, menus and how many buttons say that their part is open. */
const readOpen = (page: Page): Promise<string> =>
  page.evaluate(`['[role=dialog]', '[role=menu]', '[role=listbox]', 'main [aria-expanded=true]', 'main form']
    .map((selector) => document.querySelectorAll(selector).length).join()`)

/**
 * Chooses each tab, then clicks each button of another name, and goes back.
 * @param show called while something is open, with what was clicked
 */
export async function openOnce(page: Page, show: (what: string) => Promise<void>): Promise<void> {
  const address = page.url()
  const main = page.getByRole('main')
  const tabs = await main.getByRole('tab', { selected: false }).allTextContents()
  for (const tab of tabs.slice(0, most)) {
    await main.getByRole('tab', { name: tab, exact: true }).first().click()
    await settleShortly(page)
    await show(`tab ${tab}`)
    const within = 'main [role=tabpanel][data-state=active]'
    await openButtons(page, page.url(), within, (what) => show(`tab ${tab}, ${what}`))
  }
  await goBack(page, address)
  await openButtons(page, address, 'main', show)
}

async function openButtons(
  page: Page,
  address: string,
  within: string,
  show: (what: string) => Promise<void>,
): Promise<void> {
  for (const name of await listButtons(page, within)) {
    const before = await readOpen(page)
    const button = page
      .locator(within)
      .getByRole('button', { name, exact: true, disabled: false })
      .first()
    if ((await button.count()) === 0) continue
    await button.click({ timeout: 2_000 }).catch(() => undefined)
    await settleShortly(page)
    if ((await readOpen(page)) !== before) {
      await show(name)
      await page.keyboard.press('Escape')
    }
    if (page.url() !== address || (await readOpen(page)) !== before) await goBack(page, address)
  }
}

/** Names of buttons that may open something: neither one that copies nor one for each row. */
async function listButtons(page: Page, within: string): Promise<string[]> {
  const names = await page.evaluate<string[]>(`[...document.querySelectorAll('${within} button')]
    .filter((button) => !button.disabled && button.role !== 'tab' && button.role !== 'switch'
      && !button.closest('tr + tr + tr, li + li') && button.offsetParent !== null)
    .map((button) => (button.ariaLabel ?? button.innerText ?? '').trim())`)
  // A longer one is a row.
  return [...new Set(names)].filter((name) => /^(?!Copy ).{1,40}$/.test(name)).slice(0, most)
}

async function goBack(page: Page, address: string): Promise<void> {
  await page.goto(address)
  await page.getByRole('main').waitFor()
  await settleShortly(page)
}

async function settleShortly(page: Page): Promise<void> {
  await page.evaluate('new Promise((done) => setTimeout(done, 250))')
  await page
    .locator('.skeleton, [aria-busy=true]')
    .first()
    .waitFor({ state: 'detached', timeout: 4_000 })
    .catch(() => undefined)
}
