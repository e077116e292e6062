/**
 * The console in a real browser on a real stack: each test checks the page and then the answer of
 * the API. The tests of this file are one story and run in order.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { launchBrowser, openPage, type WatchedPage } from '../../support/console/browser.ts'
import { startProvider, type TestProvider } from '../../support/http/oidc-provider.ts'
import { admin, ingest, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { freePortBase, startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { describeAccount } from './account-story.ts'
import { describeAlerts, describeCases } from './alert-story.ts'
import { describeAnalytics } from './analytics-story.ts'
import { describeAttestation } from './attestation-story.ts'
import { describeAudit } from './audit-story.ts'
import { describeBrowsers } from './browser-story.ts'
import { describeBulk } from './bulk-story.ts'
import { describeEntities } from './entity-story.ts'
import { describeIntegration } from './integration-story.ts'
import { describePolicies } from './policy-story.ts'
import { describeSingleSignOn } from './single-sign-on-story.ts'
import { describeWebhooks } from './webhook-story.ts'

const password = 'nine blue kettles sing'
const email = 'ada@example.com'

let running: TestStack
let browser: Browser
let provider: TestProvider
let watched: WatchedPage
let page: Page
/** The credentials that the page showed. */
let acme: Tenant

beforeAll(async () => {
  const portBase = await freePortBase()
  // The console listens on the third port.
  provider = await startProvider({ redirectUri: `http://127.0.0.1:${portBase + 2}/oidc` })
  const env = {
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
  }
  ;[running, browser] = await Promise.all([startStack({ portBase, env }), launchBrowser()])
  watched = await openPage(browser, { baseURL: running.stack.console })
  page = watched.page
})

afterAll(async () => {
  await browser?.close()
  await running?.discard()
  await provider?.stop()
})

afterEach(() => expect(watched.faults).toEqual([]))

const invite = (role: string, address: string) =>
  admin<{ url: string }>(running.stack, 'POST', '/operators/invitations', { email: address, role })

const heading = (name: string) => page.getByRole('heading', { name, exact: true })
const button = (name: string) => page.getByRole('button', { name, exact: true })

const account = () => page.getByRole('button', { name: 'Account of Ada Lovelace' })

/** Fills in the visible sign-in form. */
async function signIn(on: Page, typed = password): Promise<void> {
  await on.getByLabel('Email').fill(email)
  await on.getByLabel('Password').fill(typed)
  await on.getByRole('button', { name: 'Sign in' }).click()
}

/** The console's label of a secret: its last characters, without the padding of base64. */
const last4 = (secret: string) => secret.replace(/=+$/, '').slice(-4)

/** The value beside a name in a dialog that shows keys. */
async function readValue(name: string): Promise<string> {
  const line = page.getByRole('region', { name, exact: true })
  return (await line.locator('code').textContent()) ?? ''
}

type Rotation = {
  state: string
  started_by: string
  started_at: string
  edges: { edge_id: string; old_off: object | null; new_on: object | null }[]
  new_keys: object | null
}
const readRotation = async () =>
  (await admin<{ rotation: Rotation }>(running.stack, 'GET', '/tenants/acme/rotation')).rotation

describe('a first administrator', () => {
  it('creates an account by an invitation, which works once', async () => {
    const { url } = await invite('admin', email)
    await page.goto(url)
    await page.getByText(email).waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.getByLabel('Password').fill('password1234')
    await button('Create the account').click()
    // A common password, rejected beside the field.
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(password)
    await button('Create the account').click()
    await account().waitFor()
    expect(new URL(page.url()).hash).toBe('')

    const { data } = await admin<{ data: Record<string, unknown>[] }>(
      running.stack,
      'GET',
      '/operators',
    )
    expect(data).toMatchObject([{ email, name: 'Ada Lovelace', role: 'admin', totp: false }])
    const other = await openPage(browser, { baseURL: running.stack.console })
    await other.page.goto(url)
    await other.page.getByText('This invitation cannot be used').waitFor()
    await other.page.context().close()
  })

  it('creates a tenant and sees its keys once', async () => {
    await page.getByRole('link', { name: 'Admin' }).click()
    await heading('Tenants').waitFor()
    await button('Create a tenant').click()
    await page.getByLabel('Slug').fill('Not A Slug')
    await button('Create').click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Slug').fill('acme')
    await page.getByLabel('Name').fill('Acme Bank')
    await button('Create').click()
    await heading('The keys of acme').waitFor()
    acme = {
      tenant_id: 'acme',
      public_api_key: await readValue('Public API key'),
      hmac_secret: await readValue('HMAC secret'),
      webhook_secret: await readValue('Webhook secret'),
    }
    expect(new Set(Object.values(acme)).size).toBe(4)
    expect(acme.public_api_key).toMatch(/^dpk_live_/)
    expect(await findViolations(page)).toEqual([])
    await button('I have saved them').click()
    await heading('acme').waitFor()
    expect(await page.content()).not.toContain(acme.hmac_secret)

    const body = toBody('acme')
    const answer = await until('the edge knows the tenant', async () => {
      const { status, body: answered } = await ingest(running.stack, acme.hmac_secret, body)
      return status === 200 ? answered : null
    })
    expect(answer).toMatchObject({ status: 'accepted' })
    expect(await admin(running.stack, 'GET', '/tenants/acme')).toMatchObject({
      name: 'Acme Bank',
      environment: 'live',
      hmac_secret: { last4: last4(acme.hmac_secret) },
    })
  })

  it('rotates keys while requests arrive, after typing the slug and the password', async () => {
    const statuses: number[] = []
    let sending = true
    const sender = (async () => {
      while (sending) {
        statuses.push((await ingest(running.stack, acme.hmac_secret, toBody('acme'))).status)
        await pause(20)
      }
    })()
    try {
      await page.getByRole('link', { name: 'Integrations' }).click()
      await page.getByRole('link', { name: 'acme', exact: true }).click()
      await button('Rotate keys').click()
      const rotate = page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' })
      await page.getByLabel('Type acme to confirm').fill('acm')
      expect(await rotate.isDisabled()).toBe(true)
      await page.getByLabel('Type acme to confirm').fill('acme')
      expect(await findViolations(page)).toEqual([])
      expect(statuses.at(-1)).toBe(200)
      await rotate.click()
      await heading('Confirm that it is you').waitFor()
      await page.getByLabel('Password').fill('something else')
      await button('Confirm').click()
      await page.getByRole('alert').waitFor()
      await page.getByLabel('Password').fill(password)
      await button('Confirm').click()
      await heading('The new keys of acme').waitFor()
      await until('the old secret is refused', () => statuses.at(-1) === 401)
    } finally {
      sending = false
      await sender
    }
    expect(new Set(statuses)).toEqual(new Set([200, 401]))
    // Once rejected, the old secret is never accepted again.
    expect(statuses.lastIndexOf(200)).toBeLessThan(statuses.indexOf(401))
    const { edges } = await readRotation()
    expect(edges).toHaveLength(1)
    expect(edges[0]).toMatchObject({
      old_off: { outcome: 'confirmed' },
      new_on: { outcome: 'confirmed' },
    })
    const edge = page.getByRole('dialog').getByRole('row', { name: edges[0]!.edge_id })
    await edge.waitFor()
    expect(await edge.getByText('confirmed', { exact: true }).count()).toBe(2)
    expect(await findViolations(page)).toEqual([])

    const secret = await readValue('HMAC secret')
    expect(secret).not.toBe(acme.hmac_secret)
    expect((await ingest(running.stack, secret, toBody('acme'))).status).toBe(200)
    acme = { ...acme, hmac_secret: secret, webhook_secret: await readValue('Webhook secret') }
    await button('I have saved them').click()
    await heading('The new keys of acme').waitFor({ state: 'detached' })
    expect(await admin(running.stack, 'GET', '/tenants/acme')).toMatchObject({
      hmac_secret: { last4: last4(secret) },
      webhook_secret: { last4: last4(acme.webhook_secret) },
    })
    expect(await readRotation()).toMatchObject({ state: 'done', new_keys: null })
    await page.getByRole('region', { name: 'Refused requests by SDK version' }).waitFor()
    const stale = await admin<{ requests: number }>(
      running.stack,
      'GET',
      '/tenants/acme/stale-secret-requests',
    )
    expect(stale.requests).toBeGreaterThan(0)
  })

  it('finds the new keys of a rotation after the page was reloaded meanwhile', async () => {
    await button('Rotate keys').click()
    await page.getByLabel('Type acme to confirm').fill('acme')
    const { started_at: before } = await readRotation()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' }).click()
    // The browser drops a request of a page that is reloaded, if it has not sent all of it.
    await until('the rotation begins', async () => (await readRotation()).started_at !== before)
    await page.reload()
    await button('Show the new keys').waitFor()
    await page.getByText(/^done/).waitFor()
    expect(await findViolations(page)).toEqual([])
    expect(await findOverflow(page)).toBe(0)
    expect(await readRotation()).toMatchObject({ state: 'done', started_by: email })
    await button('Show the new keys').click()
    await heading('The new keys of acme').waitFor()
    await button('Later').click()
    await button('Show the new keys').click()
    await heading('The new keys of acme').waitFor()
    expect(await findOverflow(page)).toBe(0)
    const secret = await readValue('HMAC secret')
    expect((await ingest(running.stack, acme.hmac_secret, toBody('acme'))).status).toBe(401)
    expect((await ingest(running.stack, secret, toBody('acme'))).status).toBe(200)
    acme = { ...acme, hmac_secret: secret, webhook_secret: await readValue('Webhook secret') }
    await button('I have saved them').click()
    await heading('The new keys of acme').waitFor({ state: 'detached' })
    expect(await button('Show the new keys').count()).toBe(0)
    expect((await readRotation()).new_keys).toBeNull()
    expect(await page.content()).not.toContain(secret)
  })

  describeIntegration(() => ({ running, page, tenant: acme }))
  describeAttestation(() => ({ running, page, password, tenant: acme }))

  it('finds each change in the audit log, with its previous and new values', async () => {
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByLabel('Log', { exact: true }).selectOption('acme')
    const created = page.getByRole('cell', { name: 'tenant.created' })
    await until('the log is that of one tenant', async () => (await created.count()) === 1)
    await created.click()
    await page.getByRole('region', { name: 'After', exact: true }).waitFor()
    expect(new URL(page.url()).searchParams.get('of')).toBe('acme')
    const { data } = await admin<{ data: { action: string; actor: string }[] }>(
      running.stack,
      'GET',
      '/tenants/acme/audit',
    )
    expect(data.map(({ actor }) => actor)).toEqual(data.map(() => email))
    expect(await page.getByRole('row').count()).toBe(data.length + 1)
    await page.reload()
    await page.getByRole('region', { name: 'After', exact: true }).waitFor()
  })
})

describe('operators', () => {
  it('are invited with a role, see its permissions, and are disabled', async () => {
    await page.getByRole('link', { name: 'Operators' }).click()
    await button('Invite').click()
    await page.getByLabel('Email').fill('grace@example.com')
    await page.getByLabel('Role').selectOption('viewer')
    await button('Make the link').click()
    await heading('The invitation is ready').waitFor()
    const url = await readValue('Link')
    await button('Done').click()
    await page.getByRole('row', { name: /grace@example\.com.* open / }).waitFor()

    const grace = await openPage(browser, { baseURL: running.stack.console })
    await grace.page.goto(url)
    await grace.page.getByLabel('Your name').fill('Grace Hopper')
    await grace.page.getByLabel('Password').fill('seven grey owls read')
    await grace.page.getByRole('button', { name: 'Create the account' }).click()
    await grace.page.getByRole('link', { name: 'Admin' }).click()
    await grace.page.getByRole('link', { name: 'Integrations' }).click()
    await grace.page.getByRole('link', { name: 'acme', exact: true }).click()
    await grace.page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    expect(await grace.page.getByRole('button', { name: 'Rotate keys' }).count()).toBe(0)
    expect(await grace.page.getByRole('link', { name: 'Operators' }).count()).toBe(0)
    const refused = await grace.page.request.get(`${running.stack.console}/admin/v1/operators`)
    expect([refused.status(), ((await refused.json()) as { code: string }).code]).toEqual([
      403,
      'forbidden',
    ])

    await page.reload()
    // Who requires a second factor has one.
    await button('Require it').click()
    await page.getByText('Set up your own first').waitFor()
    expect(await findViolations(page)).toEqual([])
    expect(
      await page.getByRole('dialog').getByRole('button', { name: 'Require it' }).isDisabled(),
    ).toBe(true)
    await page.keyboard.press('Escape')
    await button('Change Grace Hopper').click()
    await button('Disable').click()
    await page.getByRole('cell', { name: 'disabled' }).waitFor()
    // Her next action requires a new sign-in, and the page below stays.
    // The page may have asked for something by itself before.
    const ended = grace.page.getByText('Your session has ended.')
    await grace.page.getByRole('link', { name: 'Audit' }).or(ended).first().click()
    await ended.waitFor()
    expect(grace.faults).toEqual([])
    await grace.page.context().close()
    const { data } = await admin<{ data: object[] }>(running.stack, 'GET', '/operators')
    expect(data).toMatchObject([
      { email, disabled: false },
      { disabled: true, role: 'viewer' },
    ])
  })
})

describe('a session', () => {
  it('that ends keeps typed text and the address, and repeats what failed after the sign-in', async () => {
    await page.getByRole('link', { name: 'Tenants' }).click()
    await button('Create a tenant').click()
    await page.getByLabel('Slug').fill('globex')
    const before = page.url()

    const second = await openPage(browser, { baseURL: running.stack.console })
    await second.page.goto('/account')
    await signIn(second.page)
    const first = second.page.getByRole('row').filter({ hasNotText: 'this one' })
    await first.getByRole('button', { name: 'End' }).click()
    await until(
      'one session is left',
      async () => (await second.page.getByRole('row').count()) === 2,
    )
    expect(second.faults).toEqual([])
    await second.page.context().close()

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
    expect(await admin(running.stack, 'GET', '/tenants/globex')).toMatchObject({ status: 'active' })
  })

  it('ends at sign-out, for the page and for its cookie', async () => {
    const cookies = await page.context().cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    const read = () => fetch(`${running.stack.console}/admin/v1/session`, { headers: { cookie } })
    expect((await read()).status).toBe(200)
    await account().click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await heading('Sign in').waitFor()
    expect((await read()).status).toBe(401)
    await page.goBack()
    await heading('Sign in').waitFor()
  })

  it('starts at the opened address, and rejects a wrong password', async () => {
    await page.goto('/manage/audit?of=globex')
    expect(await findViolations(page)).toEqual([])
    await signIn(page, 'not the password')
    await page.getByRole('alert').waitFor()
    await signIn(page)
    await page.getByRole('cell', { name: 'tenant.created' }).waitFor()
    expect(new URL(page.url()).search).toBe('?of=globex')
  })
})

describePolicies(() => ({ running, browser, page, email, password, tenant: acme }))
describeAnalytics(() => ({ running, browser, page, email, password, tenant: acme }))
describeWebhooks(() => ({ running, page, password }))
describeAlerts(() => ({ running, page, email }))
describeCases(() => ({ running, page, email }))
describeBulk(() => ({ running, page, email }))
describeEntities(() => ({ running, page }))
describeAccount(() => ({ running, browser }))
describeBrowsers(() => ({ running, browser }))
describeSingleSignOn(() => ({ running, browser, provider, email, password }))
describeAudit(() => ({ running, page, email, password }))

describe('every page', () => {
  it.each([
    '/account',
    '/manage/tenants',
    '/manage/integrations',
    '/manage/operators',
    '/manage/audit',
  ])('%s has no fault that axe finds in light and dark, and fits 320 px', async (address) => {
    await page.goto(address)
    await page.getByRole('table').first().waitFor()
    expect(await findViolations(page)).toEqual([])
    expect(await findOverflow(page)).toBe(0)
  })

  it('shows at most 80 rows of a long list at once', async () => {
    const { data } = await admin<{ data: object[] }>(running.stack, 'GET', '/tenants')
    const many = Array.from({ length: 5_000 }, (_, at) => ({ ...data[0], tenant_id: `t-${at}` }))
    await page.route('**/admin/v1/tenants?*', (route) =>
      route.fulfill({ json: { data: many, total: many.length, limit: 1000, next_cursor: null } }),
    )
    await page.setViewportSize({ width: 1_280, height: 2_160 })
    await page.goto('/manage/tenants')
    await page.getByRole('link', { name: 't-0', exact: true }).waitFor()
    const rows = () => page.locator('main tr').count()
    expect(await rows()).toBeLessThanOrEqual(80)
    await page.getByRole('region', { name: 'Tenants' }).evaluate((region) => {
      region.scrollTop = region.scrollHeight
    })
    await page.getByRole('link', { name: 't-4999', exact: true }).waitFor()
    expect(await rows()).toBeLessThanOrEqual(80)
    await page.unroute('**/admin/v1/tenants?*')
    await page.setViewportSize({ width: 1_280, height: 720 })
  })

  it('that fails shows the request id and can be reloaded', async () => {
    await page.route('**/admin/v1/operators', (route) =>
      route.fulfill({
        status: 500,
        headers: { 'x-request-id': 'req_of-this-test' },
        json: { status: 500, code: 'internal_error', detail: 'Something went wrong.' },
      }),
    )
    await page.goto('/manage/operators')
    await page.getByText('This could not be loaded').waitFor()
    await page.getByRole('button', { name: 'Copy req_of-this-test' }).waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.unroute('**/admin/v1/operators')
    await button('Try again').click()
    await page.getByRole('cell', { name: email }).first().waitFor()
  })

  it('is dark when the system or the operator wants it, from the first paint on', async () => {
    const background = () =>
      page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
    const light = await background()
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.emulateMedia({ colorScheme: 'light' })
    await account().click()
    await page.getByRole('menuitemradio', { name: 'Dark' }).click()
    expect(await background()).toBe(dark)
    await page.reload({ waitUntil: 'commit' })
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    await account().click()
    await page.getByRole('menuitemradio', { name: 'As the system' }).click()
    expect(await background()).toBe(light)
  })

  it('is found by its name from the keyboard', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill('audit')
    await page.keyboard.press('Enter')
    await heading('Audit').waitFor()
    await page.keyboard.press('Control+k')
    expect(await findViolations(page)).toEqual([])
    await page.keyboard.press('Escape')
  })
})

describe('behind a proxy, under a path', () => {
  let proxy: Server
  let target = ''

  beforeAll(async () => {
    proxy = createServer((request, response) => {
      const { method, headers, url } = request
      // The proxy removes the prefix, as most proxies do.
      const upstream = new Request(`${target}${url?.replace(/^\/tools\/di/, '')}`, {
        method: method ?? 'GET',
        headers: Object.entries(headers)
          .filter(([name]) => !['host', 'connection', 'content-length'].includes(name))
          .map(([name, value]): [string, string] => [name, String(value)]),
        ...(method === 'POST' ? { body: request as never, duplex: 'half' } : {}),
      } as RequestInit)
      fetch(upstream, { redirect: 'manual' })
        .then(async (answer) => {
          const kept = [...answer.headers].filter(([name]) => !/encoding|length/.test(name))
          response.writeHead(answer.status, kept.flat())
          response.end(Buffer.from(await answer.arrayBuffer()))
        })
        .catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tools/di/`
    const { dataDir } = running
    await running.stop()
    const portBase = await freePortBase()
    running = await startStack({ dataDir, portBase, env: { PUBLIC_URL: base } })
    target = running.stack.console
    await page.context().close()
    watched = await openPage(browser, { baseURL: base })
    page = watched.page
  })
  afterAll(() => {
    proxy?.closeAllConnections()
    proxy?.close()
  })

  it('works at every address of it, and through a proxy that keeps the path', async () => {
    await page.goto('manage/integrations/acme')
    await signIn(page)
    await heading('Keys').waitFor()
    await page.getByRole('link', { name: 'Tenants' }).click()
    await page.getByRole('link', { name: 'globex', exact: true }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/tools/di/manage/tenants')
    await page.reload()
    await page.getByRole('link', { name: 'globex', exact: true }).waitFor()
    const { status } = await fetch(`${target}/tools/di/admin/v1/session`)
    expect(status).toBe(401)
    expect((await fetch(`${target}/tools/other`)).status).toBe(404)
    await account().click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await heading('Sign in').waitFor()
  })
})
