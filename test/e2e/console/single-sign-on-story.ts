/** The part of the console's story about single sign-on, through a real provider on this machine. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage, type WatchedPage } from '../../support/console/browser.ts'
import type { TestProvider } from '../../support/http/oidc-provider.ts'
import { admin } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** `email` and `password` are those of an administrator who has a password. */
export type SingleSignOnStory = {
  running: TestStack
  browser: Browser
  provider: TestProvider
  email: string
  password: string
}

const olga = { sub: 'olga-1', email: 'olga@example.com', email_verified: true }

export function describeSingleSignOn(getStory: () => SingleSignOnStory): void {
  const stack = () => getStory().running.stack
  let watched: WatchedPage
  let page: Page
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const account = () => page.getByRole('button', { name: `Account of ${olga.email}` })
  const status = async () =>
    (await page.request.get(`${stack().console}/admin/v1/session`)).status()
  const actionsOfOlga = async () => {
    const path = `/audit?actor=${olga.email}&limit=500`
    const { data } = await admin<{ data: { action: string; after: unknown }[] }>(
      stack(),
      'GET',
      path,
    )
    return data
  }

  describe('single sign-on', () => {
    beforeAll(async () => {
      watched = await openPage(getStory().browser, { baseURL: stack().console })
      page = watched.page
    })
    afterAll(async () => {
      // Only the redirect to the provider leads to another origin.
      const { issuer } = getStory().provider
      expect(watched.faults.filter((fault) => !fault.startsWith(`asked ${issuer}`))).toEqual([])
      await page.context().close()
    })

    it('makes the account of an invitation, without a password', async () => {
      getStory().provider.person = { identity: olga }
      const body = { email: olga.email, role: 'admin' }
      const { url } = await admin<{ url: string }>(stack(), 'POST', '/operators/invitations', body)
      await page.goto(url)
      await button('Continue with single sign-on').waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      await button('Continue with single sign-on').click()
      await account().waitFor()
      expect(page.url()).not.toContain('code=')
      await page.goto('/account')
      await page.getByText('You have no password').waitFor()
      const { data } = await admin<{ data: { email: string }[] }>(stack(), 'GET', '/operators')
      expect(data.find((one) => one.email === olga.email)).toMatchObject({
        oidc: true,
        password: false,
      })
      await page.goto('/manage/operators')
      const row = page.getByRole('row').filter({ hasText: olga.email }).first()
      await row.getByText('single sign-on').waitFor()
    })

    it('signs in, at the address that was opened', async () => {
      await account().click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.goto('/manage/audit?action=operator.oidc_bound')
      await button('Continue with single sign-on').waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      await button('Continue with single sign-on').click()
      await page.getByRole('cell', { name: olga.email }).waitFor()
      const { pathname, search } = new URL(page.url())
      expect(pathname + search).toBe('/manage/audit?action=operator.oidc_bound')
      expect((await actionsOfOlga())[0]).toMatchObject({
        action: 'operator.signed_in',
        after: { by: 'oidc' },
      })
    })

    it('confirms a step-up in a separate window, and the page continues', async () => {
      await page.goto('/account')
      await button('Set up').click()
      await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
      expect(await page.getByRole('dialog').getByLabel('Password').count()).toBe(0)
      expect(await findViolations(page)).toEqual([])
      await button('Confirm with single sign-on').click()
      await page.getByRole('heading', { name: 'Set up the second factor' }).waitFor()
      await button('Cancel').click()
      expect((await actionsOfOlga())[0]).toMatchObject({
        action: 'operator.stepped_up',
        after: { by: 'oidc' },
      })
    })

    it('keeps the page when the session ends, and repeats what failed after the sign-in', async () => {
      await page.goto('/manage/tenants')
      await button('Create a tenant').click()
      await page.getByLabel('Slug').fill('initech')
      await page.context().clearCookies()
      // The page may have asked for something by itself before: then the sign-in page is over it.
      await page
        .getByRole('button', { name: 'Create', exact: true, includeHidden: true })
        .dispatchEvent('click')
      await page.getByText('Your session has ended.').waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await page.getByLabel('Slug').inputValue()).toBe('initech')
      await button('Continue with single sign-on').click()
      await page.getByText('Your session has ended.').waitFor({ state: 'detached' })
      // What failed is done then, once and without a second click.
      await page.getByRole('heading', { name: 'The keys of initech' }).waitFor()
      await button('I have saved them').click()
      const path = '/tenants/initech/audit?action=tenant.created'
      const { data } = await admin<{ data: object[] }>(stack(), 'GET', path)
      expect(data).toMatchObject([{ actor: olga.email }])
    })

    it('is rejected for an identity without an account', async () => {
      getStory().provider.person = {
        identity: { ...olga, sub: 'olga-2', email: 'eve@example.com' },
      }
      await account().click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await button('Continue with single sign-on').waitFor()
      // The provider's own session ends as well; otherwise it would send Olga back.
      await page.context().clearCookies()
      await button('Continue with single sign-on').click()
      await page.getByText('This identity cannot sign in here.').waitFor()
      expect(page.url()).not.toContain('code=')
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      expect(await status()).toBe(401)
    })

    it('is the only way in while passwords are off, except by the link of a reset', async () => {
      const switchOff = (on: Page) =>
        on.route('**/admin/v1/session/ways', async (route) => {
          const response = await route.fetch()
          await route.fulfill({ response, json: { ...(await response.json()), passwords: false } })
        })
      const other = await openPage(getStory().browser, { baseURL: stack().console })
      const on = other.page
      await switchOff(on)
      const check = async () => {
        expect(await findViolations(on)).toEqual([])
        expect(await findOverflow(on)).toBe(0)
      }
      const single = on.getByRole('button', { name: 'Continue with single sign-on' })
      const ofPassword = on.getByLabel('Password', { exact: true })
      await on.goto('/')
      await single.waitFor()
      await on.getByText('di operators reset EMAIL').waitFor()
      expect(await ofPassword.count()).toBe(0)
      await check()

      const body = { email: 'wendy@example.com', role: 'viewer' }
      const invited = await admin<{ url: string }>(stack(), 'POST', '/operators/invitations', body)
      await on.goto(invited.url)
      await single.waitFor()
      expect(await ofPassword.count()).toBe(0)
      await check()

      const { data } = await admin<{ data: { email: string; operator_id: string }[] }>(
        stack(),
        'GET',
        '/operators',
      )
      const { operator_id: id } = data.find(({ email }) => email === olga.email)!
      const reset = `/operators/${id}/reset`
      const { url } = await admin<{ url: string }>(stack(), 'POST', reset)
      await on.goto('about:blank')
      await on.goto(url)
      await on.getByText('Passwords are switched off here.').waitFor()
      expect(await single.count()).toBe(0)
      await check()
      await ofPassword.fill('seven tall cranes wait')
      await on.getByRole('button', { name: 'Set the password' }).click()
      await on.getByRole('button', { name: `Account of ${olga.email}` }).waitFor()
      await on.goto('/account')
      await on.getByText('Passwords are switched off here: everyone signs in').waitFor()
      expect(await on.getByLabel('Present password').count()).toBe(0)
      await check()
      expect(other.faults).toEqual([])
      await on.context().close()
    })

    it('shows why the provider is unavailable, and a password works meanwhile', async () => {
      const { provider, email, password } = getStory()
      await provider.stop()
      await page.getByRole('link', { name: 'Go to sign in' }).click()
      await button('Continue with single sign-on').click()
      await page.getByText('Sign in with your password instead.').waitFor()
      expect(await page.getByRole('alert').textContent()).toContain('refuses the connection')
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      expect(await status()).toBe(401)
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(password)
      await button('Sign in').click()
      await until('the person is signed in', async () => (await status()) === 200)
      await provider.start()
    })
  })
}
