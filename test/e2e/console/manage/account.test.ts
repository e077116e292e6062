/** An operator's own account: second factor, recovery codes and password. */
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findViolations } from '../../../support/console/accessibility.ts'
import {
  accountOn,
  commonPassword,
  invite,
  makeOperator,
  signInOn,
  signOutOn,
} from '../../../support/console/operators.ts'
import { tellStory } from '../../../support/console/story.ts'
import { admin, createTenant } from '../../../support/http/tenant-client.ts'

const nextPassword = 'four green lamps at dusk'
const stepMs = 30_000

const story = tellStory('mary', { role: 'analyst' })
const { button, expectNoFault } = story
const { email, name, password } = story
const stack = () => story.stack
let secret = ''
let codes: string[] = []
const codeOf = (steps: number) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({
    timestamp: Date.now() + steps * stepMs,
  })
const actionsOfMary = async () => {
  const path = `/audit?actor=${email}&limit=500`
  const { data } = await admin<{ data: { action: string }[] }>(stack(), 'GET', path)
  return data.map(({ action }) => action)
}
const signIn = (on: Page, typed: string) => signInOn(on, { email, password: typed })
const account = (on = story.page) => accountOn(on, name)
async function enterCode(on: Page, code: string): Promise<void> {
  await on.getByRole('textbox', { name: 'Code' }).fill(code)
  await on.getByRole('button', { name: 'Sign in', exact: true }).click()
}
const signOut = () => signOutOn(story.page, name)

describe('an account', () => {
  it('gets a second factor after a step-up, by a code of the app', async () => {
    const { page } = story
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
    const { page } = story
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
    const { page } = story
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
    const nina = makeOperator('Nina', 'viewer')
    const other = await story.open()
    await other.goto(await invite(stack(), nina, [slug]))
    await other.getByLabel('Your name').fill(nina.name)
    await other.getByLabel('Password').fill(commonPassword)
    await other.getByRole('button', { name: 'Create the account' }).click()
    const first = other.getByRole('heading', { name: 'Set up a second factor' })
    await first.waitFor()
    await other.goto(`/t/${slug}/alerts`)
    await first.waitFor()
    await expectNoFault(other)
    const tried = await other.request.get(`${stack().console}/admin/v1/tenants/${slug}/alerts`)
    expect(tried.status()).toBe(403)
    await other.getByRole('button', { name: 'Set up' }).click()
    const line = other.getByRole('region', { name: 'Secret', exact: true })
    const own = Secret.fromBase32((await line.locator('code').textContent()) ?? '')
    await other.getByRole('textbox', { name: 'Code' }).fill(new TOTP({ secret: own }).generate())
    await other.getByRole('button', { name: 'Switch on' }).click()
    await other.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    await other.getByRole('button', { name: 'I have saved them' }).click()
    await other.getByRole('heading', { name: 'Alerts', exact: true }).waitFor()
    expect(new URL(other.url()).pathname).toBe(`/t/${slug}/alerts`)
    await other.context().close()
    await rule(false)
  })

  it('ends its other sessions when its password changes, and keeps its own', async () => {
    const { page } = story
    const other = await story.open()
    await other.goto('/account')
    await signIn(other, password)
    await enterCode(other, codes[2]!)
    await account(other).waitFor()
    await page.goto('/account')
    await page.getByLabel('Present password').fill('not the present one')
    await page.getByLabel('New password').fill(nextPassword)
    await button('Change the password').click()
    await page.getByText('The present password is wrong.').waitFor()
    await page.getByLabel('Present password').fill(password)
    await button('Change the password').click()
    await page.getByText('All other sessions of yours have ended.').first().waitFor()

    const read = (on: Page) => on.request.get(`${stack().console}/admin/v1/session`)
    expect((await read(other)).status()).toBe(401)
    expect((await read(page)).status()).toBe(200)
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(other, password)
    await other.getByRole('alert').waitFor()
    await signIn(other, nextPassword)
    await enterCode(other, codes[3]!)
    await account(other).waitFor()
    await other.context().close()
    expect(await actionsOfMary()).toEqual(
      expect.arrayContaining(['operator.password_changed', 'operator.totp_switched_on']),
    )
  })
})
