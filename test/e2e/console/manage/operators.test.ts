/** Operators are invited, disabled and signed out; their sessions begin, end and go on. */
import { describe, expect, it } from 'vitest'
import { findViolations } from '../../../support/console/accessibility.ts'
import { confirmAs } from '../../../support/console/controls.ts'
import {
  acceptOn,
  accountOn,
  invite,
  makeOperator,
  signInOn,
  signOutOn,
} from '../../../support/console/operators.ts'
import { tellStory } from '../../../support/console/story.ts'
import { admin } from '../../../support/http/tenant-client.ts'
import { until } from '../../../support/process/until.ts'

const story = tellStory('olympus')
const { button, expectNoFault, heading } = story

describe('operators', () => {
  it('creates an account by an invitation, which works once', async () => {
    const ada = makeOperator('Ada')
    const url = await invite(story.stack, ada)
    const page = await story.open()
    await page.goto(url)
    await page.getByText(ada.email).waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.getByLabel('Your name').fill(ada.name)
    await page.getByLabel('Password').fill('password1234')
    const create = page.getByRole('button', { name: 'Create the account' })
    await create.click()
    // A common password, rejected beside the field.
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(ada.password)
    await create.click()
    await accountOn(page, ada.name).waitFor()
    expect(new URL(page.url()).hash).toBe('')

    const { data } = await admin<{ data: Record<string, unknown>[] }>(
      story.stack,
      'GET',
      '/operators',
    )
    const { email, name } = ada
    expect(data).toContainEqual(
      expect.objectContaining({ email, name, role: 'admin', totp: false }),
    )
    await page.goto('about:blank')
    await page.goto(url)
    await page.getByText('This invitation cannot be used').waitFor()
    await page.context().close()
  })

  it('are invited with a role, see its permissions, and are disabled', async () => {
    const { page } = story
    await page.goto('/manage/operators')
    await button('Invite').click()
    await page.getByLabel('Email').fill('grace@example.com')
    await page.getByLabel('Role').selectOption('viewer')
    await button('Make the link').click()
    await confirmAs(page, story.password, heading('The invitation is ready'))
    const url = await story.readValue('Link')
    await button('Done').click()
    await page.getByRole('row', { name: /grace@example\.com.* open / }).waitFor()

    const grace = await story.open()
    await grace.goto(url)
    await acceptOn(grace, { name: 'Grace Hopper', password: 'seven grey owls read' })
    await grace.getByRole('link', { name: 'Admin' }).click()
    await grace.getByRole('link', { name: 'Integrations' }).click()
    await grace.getByRole('link', { name: 'olympus', exact: true }).click()
    await grace.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    expect(await grace.getByRole('button', { name: 'Rotate keys' }).count()).toBe(0)
    expect(await grace.getByRole('link', { name: 'Operators' }).count()).toBe(0)
    const refused = await grace.request.get(`${story.stack.console}/admin/v1/operators`)
    expect([refused.status(), ((await refused.json()) as { code: string }).code]).toEqual([
      403,
      'forbidden',
    ])

    await page.reload()
    // Who requires a second factor has one.
    await button('Require it').click()
    await page.getByText('Set up your own first').waitFor()
    await expectNoFault()
    expect(
      await page.getByRole('dialog').getByRole('button', { name: 'Require it' }).isDisabled(),
    ).toBe(true)
    await page.keyboard.press('Escape')
    await button('Change Grace Hopper').click()
    await button('Disable').click()
    const row = page.getByRole('row').filter({ hasText: 'Grace Hopper' })
    await row.getByRole('cell', { name: 'disabled' }).waitFor()
    // Her next action requires a new sign-in, and the page below stays.
    // The page may have asked for something by itself before.
    const ended = grace.getByText('Your session has ended.')
    const click = grace.getByRole('link', { name: 'Audit' }).click()
    // A dialog that is there already takes the click.
    await Promise.race([click.catch(() => undefined), ended.waitFor()])
    await ended.waitFor()
    await grace.context().close()
    const { data } = await admin<{ data: object[] }>(story.stack, 'GET', '/operators')
    const { email } = story
    expect(data).toContainEqual(expect.objectContaining({ email, disabled: false }))
    const lost = { email: 'grace@example.com', disabled: true, role: 'viewer' }
    expect(data).toContainEqual(expect.objectContaining(lost))
  })
})

describe('a session', () => {
  it('that ends keeps typed text and the address, and repeats what failed after the sign-in', async () => {
    const { page, email, password } = story
    await page.goto('/manage/tenants')
    await button('Create a tenant').click()
    await page.getByLabel('Slug').fill('globex')
    const before = page.url()

    const second = await story.open()
    await second.goto('/account')
    await signInOn(second, { email, password })
    const first = second.getByRole('row').filter({ hasNotText: 'this one' })
    await first.getByRole('button', { name: 'End' }).click()
    await until('one session is left', async () => (await second.getByRole('row').count()) === 2)
    await second.context().close()

    await button('Create').click()
    await page.getByText('Your session has ended.').waitFor()
    expect(await findViolations(page)).toEqual([])
    expect(await page.getByLabel('Slug').inputValue()).toBe('globex')
    await page.getByLabel('Password').fill(password)
    await button('Sign in').click()
    await page.getByText('Your session has ended.').waitFor({ state: 'detached' })
    expect(page.url()).toBe(before)
    // What failed is done then, without a second click.
    await heading('The keys of globex').waitFor()
    await button('I have saved them').click()
    await heading('globex').waitFor()
    expect(await admin(story.stack, 'GET', '/tenants/globex')).toMatchObject({ status: 'active' })
  })

  it('ends at sign-out, for the page and for its cookie', async () => {
    const { page, name } = story
    const cookies = await page.context().cookies()
    const cookie = cookies.map(({ name: key, value }) => `${key}=${value}`).join('; ')
    const read = () => fetch(`${story.stack.console}/admin/v1/session`, { headers: { cookie } })
    expect((await read()).status).toBe(200)
    await signOutOn(page, name)
    expect((await read()).status).toBe(401)
    await page.goBack()
    await heading('Sign in').waitFor()
  })

  it('starts at the opened address, and rejects a wrong password', async () => {
    const { page, email, password } = story
    await page.goto('/manage/audit?of=globex')
    await heading('Sign in').waitFor()
    expect(await findViolations(page)).toEqual([])
    await signInOn(page, { email, password: 'not the password' })
    await page.getByRole('alert').waitFor()
    await signInOn(page, { email, password })
    await page.getByRole('cell', { name: 'tenant.created' }).waitFor()
    expect(new URL(page.url()).search).toBe('?of=globex')
  })
})
