/** The part of the console's story about an operator's own account: second factor and password. */
import { Secret, TOTP } from 'otpauth'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage, type WatchedPage } from '../../support/console/browser.ts'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'

export type AccountStory = { running: TestStack; browser: Browser }

const email = 'mary@example.com'
const password = 'eleven slow trains depart'
const nextPassword = 'four green lamps at dusk'
const stepMs = 30_000

export function describeAccount(getStory: () => AccountStory): void {
  const stack = () => getStory().running.stack
  const open = () => openPage(getStory().browser, { baseURL: stack().console })
  let watched: WatchedPage
  let page: Page
  let secret = ''
  let codes: string[] = []
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const account = (on = page) => on.getByRole('button', { name: 'Account of Mary Somerville' })
  const codeOf = (steps: number) =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({
      timestamp: Date.now() + steps * stepMs,
    })
  const actionsOfMary = async () => {
    const path = `/audit?actor=${email}&limit=500`
    const { data } = await admin<{ data: { action: string }[] }>(stack(), 'GET', path)
    return data.map(({ action }) => action)
  }
  async function signIn(on: Page, typed: string): Promise<void> {
    await on.getByLabel('Email').fill(email)
    await on.getByLabel('Password').fill(typed)
    await on.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  async function enterCode(on: Page, code: string): Promise<void> {
    await on.getByRole('textbox', { name: 'Code' }).fill(code)
    await on.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  async function signOut(): Promise<void> {
    await account().click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  }

  describe('an account', () => {
    beforeAll(async () => {
      watched = await open()
      page = watched.page
      const body = { email, role: 'analyst' }
      const { url } = await admin<{ url: string }>(stack(), 'POST', '/operators/invitations', body)
      await page.goto(url)
      await page.getByLabel('Your name').fill('Mary Somerville')
      await page.getByLabel('Password').fill(password)
      await button('Create the account').click()
      await account().waitFor()
    })
    afterAll(async () => {
      expect(watched.faults).toEqual([])
      await page.context().close()
    })

    it('gets a second factor after a step-up, by a code of the app', async () => {
      await page.goto('/account')
      await button('Set up').click()
      await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
      await page.getByRole('dialog').getByLabel('Password').fill(password)
      await button('Confirm').click()
      await page.getByRole('heading', { name: 'Set up the second factor' }).waitFor()
      expect(await findViolations(page)).toEqual([])
      const line = page.getByRole('region', { name: 'Secret', exact: true })
      secret = (await line.locator('code').textContent()) ?? ''
      await page.getByRole('textbox', { name: 'Code' }).fill('000000')
      await button('Switch on').click()
      await page.getByRole('dialog').getByRole('alert').waitFor()
      await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(0))
      await button('Switch on').click()
      await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
      const shown = page.getByRole('region', { name: 'Recovery codes', exact: true })
      codes = ((await shown.locator('pre').textContent()) ?? '').trim().split('\n')
      expect(new Set(codes).size).toBe(10)
      expect(await findViolations(page)).toEqual([])
      await button('I have saved them').click()
      await button('Switch off').waitFor()
      const { data } = await admin<{ data: { email: string; totp: boolean }[] }>(
        stack(),
        'GET',
        '/operators',
      )
      expect(data.find((one) => one.email === email)).toMatchObject({ totp: true })
    })

    it('accepts a sign-in with the password and a code, each code once', async () => {
      await signOut()
      await signIn(page, password)
      await page.getByRole('textbox', { name: 'Code' }).waitFor()
      expect(await findViolations(page)).toEqual([])
      // The code of the next step: the current one has switched the second factor on.
      const code = codeOf(1)
      await enterCode(page, code)
      await account().waitFor()
      await signOut()
      await signIn(page, password)
      await enterCode(page, code)
      await page.getByRole('alert').getByText('was used already').waitFor()
      expect((await page.request.get(`${stack().console}/admin/v1/session`)).status()).toBe(401)
    })

    it('accepts a recovery code once', async () => {
      await enterCode(page, codes[0]!.toUpperCase())
      await account().waitFor()
      await signOut()
      await signIn(page, password)
      await enterCode(page, codes[0]!)
      await page.getByRole('alert').waitFor()
      expect((await page.request.get(`${stack().console}/admin/v1/session`)).status()).toBe(401)
      await enterCode(page, codes[1]!)
      await account().waitFor()
      const used = (await actionsOfMary()).filter((one) => one === 'operator.recovery_code_used')
      expect(used).toHaveLength(2)
    })

    it('is led to a second factor where one is required, and can do nothing else before', async () => {
      const slug = 'two-factors'
      await createTenant(stack(), slug)
      const rule = (required: boolean) =>
        admin(stack(), 'PUT', `/tenants/${slug}/second-factor`, { required })
      await rule(true)
      const { url } = await admin<{ url: string }>(stack(), 'POST', '/operators/invitations', {
        email: 'nina@example.com',
        role: 'viewer',
        tenants: [slug],
      })
      const { page: other, faults } = await open()
      await other.goto(url)
      await other.getByLabel('Your name').fill('Nina Bari')
      await other.getByLabel('Password').fill('six tall masts lean')
      await other.getByRole('button', { name: 'Create the account' }).click()
      const first = other.getByRole('heading', { name: 'Set up a second factor' })
      await first.waitFor()
      await other.goto(`/t/${slug}/alerts`)
      await first.waitFor()
      expect(await findViolations(other)).toEqual([])
      expect(await findOverflow(other)).toBe(0)
      const tried = await other.request.get(`${stack().console}/admin/v1/tenants/${slug}/alerts`)
      expect(tried.status()).toBe(403)
      await other.getByRole('button', { name: 'Set up' }).click()
      const line = other.getByRole('region', { name: 'Secret', exact: true })
      const own = Secret.fromBase32((await line.locator('code').textContent()) ?? '')
      await other.getByRole('textbox', { name: 'Code' }).fill(new TOTP({ secret: own }).generate())
      await other.getByRole('button', { name: 'Switch on' }).click()
      await other.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
      expect(await findOverflow(other)).toBe(0)
      await other.getByRole('button', { name: 'I have saved them' }).click()
      await other.getByRole('heading', { name: 'Alerts', exact: true }).waitFor()
      expect(new URL(other.url()).pathname).toBe(`/t/${slug}/alerts`)
      expect(faults).toEqual([])
      await other.context().close()
      await rule(false)
    })

    it('ends its other sessions when its password changes, and keeps its own', async () => {
      const other = await open()
      await other.page.goto('/account')
      await signIn(other.page, password)
      await enterCode(other.page, codes[2]!)
      await account(other.page).waitFor()
      await page.goto('/account')
      await page.getByLabel('Present password').fill('not the present one')
      await page.getByLabel('New password').fill(nextPassword)
      await button('Change the password').click()
      await page.getByText('The present password is wrong.').waitFor()
      await page.getByLabel('Present password').fill(password)
      await button('Change the password').click()
      await page.getByText('All other sessions of yours have ended.').first().waitFor()

      const read = (on: Page) => on.request.get(`${stack().console}/admin/v1/session`)
      expect((await read(other.page)).status()).toBe(401)
      expect((await read(page)).status()).toBe(200)
      await other.page.reload()
      await other.page.getByRole('heading', { name: 'Sign in' }).waitFor()
      await signIn(other.page, password)
      await other.page.getByRole('alert').waitFor()
      await signIn(other.page, nextPassword)
      await enterCode(other.page, codes[3]!)
      await account(other.page).waitFor()
      expect(other.faults).toEqual([])
      await other.page.context().close()
      expect(await actionsOfMary()).toEqual(
        expect.arrayContaining(['operator.password_changed', 'operator.totp_switched_on']),
      )
    })
  })
}
