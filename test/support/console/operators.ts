// Operators of a console under test: one joins by the API, which costs no clicks; a sign-in is what
// a person does on the page.
import type { Page } from 'playwright-core'
import { admin } from '../http/tenant-client.ts'
import type { StackFacts } from '../process/stack.ts'
import { until } from '../process/until.ts'

export type Operator = { email: string; name: string; password: string; role: string }

/** Of every operator that a test does not give one. */
export const commonPassword = 'nine blue kettles sing'

/** An operator of a role, whose name and email have a word. */
export const makeOperator = (word: string, role = 'admin'): Operator => ({
  email: `${word.toLowerCase()}@example.com`,
  name: `${word} Tester`,
  password: commonPassword,
  role,
})

/** Invites somebody and returns the link. @param tenants null for all */
export async function invite(
  stack: StackFacts,
  { email, role }: { email: string; role: string },
  tenants?: readonly string[],
): Promise<string> {
  const body = { email, role, ...(tenants === undefined ? {} : { tenants }) }
  return (await admin<{ url: string }>(stack, 'POST', '/operators/invitations', body)).url
}

/** Makes the operator's account; their session is that of the page's context. */
export async function joinAs(stack: StackFacts, page: Page, operator: Operator): Promise<void> {
  const { email, name, password, role } = operator
  const token = (await invite(stack, { email, role })).split('#')[1]
  const { origin } = new URL(stack.console)
  // All operators of a run have one address, which may make so many accounts in a time.
  await until(`${email} has joined`, async () => {
    const answer = await page.request.post(`${origin}/admin/v1/invitations/${token}`, {
      headers: { origin },
      data: { name, password },
    })
    if (!answer.ok()) throw new Error(await answer.text())
    return true
  })
}

/** Fills in the form of an opened invitation, and waits for the signed-in page. */
export async function acceptOn(
  page: Page,
  { name, password }: Pick<Operator, 'name' | 'password'>,
): Promise<void> {
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Create the account' }).click()
  await accountOn(page, name).waitFor()
}

/** The button of the signed-in operator. */
export const accountOn = (page: Page, name: string) =>
  page.getByRole('button', { name: `Account of ${name}` })

/** Fills in the visible sign-in form. */
export async function signInOn(
  page: Page,
  { email, password }: Pick<Operator, 'email' | 'password'>,
): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Signs out from the menu of the account. */
export async function signOutOn(page: Page, name: string): Promise<void> {
  await accountOn(page, name).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
}
