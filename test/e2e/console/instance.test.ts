/**
 * What needs an instance of its own: single sign-on through a real provider on this machine,
 * servers that hang, and the address of a proxy.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signalTree } from '../../faults/support/process-tree.ts'
import { openPage, settle, type WatchedPage } from '../../support/console/browser.ts'
import { invite, makeOperator, signInOn, signOutOn } from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { startProvider, type TestProvider } from '../../support/http/oidc-provider.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { freePortBase, startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

const olga = { sub: 'olga-1', email: 'olga@example.com', email_verified: true }

let running: TestStack
let provider: TestProvider
let page: Page

// Ends after the browser of the story, which is told below.
afterAll(async () => {
  await running?.discard()
  await provider?.stop()
})
const story = tellStory('instance', {
  stack: async () => {
    const portBase = await freePortBase()
    // The console listens on the third port.
    provider = await startProvider({ redirectUri: `http://127.0.0.1:${portBase + 2}/oidc` })
    const env = {
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: provider.clientSecret,
    }
    running = await startStack({ portBase, env })
    return running.stack
  },
  // The redirect to the provider leads to another origin.
  allows: (fault) => fault.startsWith(`asked ${provider.issuer}`),
})
const { expectNoFault } = story
const button = (name: string) => page.getByRole('button', { name, exact: true })
const account = () => page.getByRole('button', { name: `Account of ${olga.email}` })
const status = async () =>
  (await page.request.get(`${story.stack.console}/admin/v1/session`)).status()
const actionsOfOlga = async () => {
  const path = `/audit?actor=${olga.email}&limit=500`
  const { data } = await admin<{ data: { action: string; after: unknown }[] }>(
    story.stack,
    'GET',
    path,
  )
  return data
}

describe('single sign-on', () => {
  beforeAll(async () => {
    page = await story.open()
  })

  it('makes the account of an invitation, without a password', async () => {
    provider.person = { identity: olga }
    await page.goto(await invite(story.stack, { email: olga.email, role: 'admin' }))
    await button('Continue with single sign-on').waitFor()
    await expectNoFault(page)
    await button('Continue with single sign-on').click()
    await account().waitFor()
    expect(page.url()).not.toContain('code=')
    await page.goto('/account')
    await page.getByText('You have no password').waitFor()
    const { data } = await admin<{ data: { email: string }[] }>(story.stack, 'GET', '/operators')
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
    await expectNoFault(page)
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
    await expectNoFault(page)
    await button('Confirm with single sign-on').click()
    await page.getByRole('heading', { name: 'Set up the second factor' }).waitFor()
    await button('Cancel').click()
    expect((await actionsOfOlga())[0]).toMatchObject({
      action: 'operator.stepped_up',
      after: { by: 'oidc' },
    })
  })

  it('keeps the page when the session ends, and repeats what failed after it', async () => {
    await page.goto('/manage/tenants')
    await button('Create a tenant').click()
    await page.getByLabel('Slug').fill('initech')
    await page.context().clearCookies()
    // The page may have asked for something by itself before: then the sign-in page is over it.
    await page
      .getByRole('button', { name: 'Create', exact: true, includeHidden: true })
      .dispatchEvent('click')
    await page.getByText('Your session has ended.').waitFor()
    await expectNoFault(page)
    expect(await page.getByLabel('Slug').inputValue()).toBe('initech')
    await button('Continue with single sign-on').click()
    await page.getByText('Your session has ended.').waitFor({ state: 'detached' })
    // What failed is done then, once and without a second click.
    await page.getByRole('heading', { name: 'The keys of initech' }).waitFor()
    await button('I have saved them').click()
    const path = '/tenants/initech/audit?action=tenant.created'
    const { data } = await admin<{ data: object[] }>(story.stack, 'GET', path)
    expect(data).toMatchObject([{ actor: olga.email }])
  })

  it('is rejected for an identity without an account', async () => {
    provider.person = {
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
    await expectNoFault(page)
    expect(await status()).toBe(401)
  })

  it('is the only way in while passwords are off, except by the link of a reset', async () => {
    const switchOff = (on: Page) =>
      on.route('**/admin/v1/session/ways', async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: { ...(await response.json()), passwords: false } })
      })
    const on = await story.open()
    await switchOff(on)
    const check = () => expectNoFault(on)
    const single = on.getByRole('button', { name: 'Continue with single sign-on' })
    const ofPassword = on.getByLabel('Password', { exact: true })
    await on.goto('/')
    await single.waitFor()
    await on.getByText('di operators reset EMAIL').waitFor()
    expect(await ofPassword.count()).toBe(0)
    await check()

    await on.goto(await invite(story.stack, makeOperator('Wendy', 'viewer')))
    await single.waitFor()
    expect(await ofPassword.count()).toBe(0)
    await check()

    const { data } = await admin<{ data: { email: string; operator_id: string }[] }>(
      story.stack,
      'GET',
      '/operators',
    )
    const { operator_id: id } = data.find(({ email }) => email === olga.email)!
    const reset = `/operators/${id}/reset`
    const { url } = await admin<{ url: string }>(story.stack, 'POST', reset)
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
    await on.context().close()
  })

  it('shows why the provider is unavailable, and a password works meanwhile', async () => {
    const { email, password } = story
    await provider.stop()
    await page.getByRole('link', { name: 'Go to sign in' }).click()
    await button('Continue with single sign-on').click()
    await page.getByText('Sign in with your password instead.').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('refuses the connection')
    await expectNoFault(page)
    expect(await status()).toBe(401)
    await signInOn(page, { email, password })
    await until('the person is signed in', async () => (await status()) === 200)
    await provider.start()
  })
})

describe('the console', () => {
  it('says that it waits while the console is frozen, and goes on by itself', async () => {
    const { page } = story
    const { console: pid } = story.stack.pids
    const waits = page.getByText('The console has not answered for 5 seconds.')
    await page.goto('/t/instance/alerts')
    await page.getByRole('switch', { name: 'Live' }).waitFor()
    process.kill(pid, 'SIGSTOP')
    try {
      await page.getByRole('switch', { name: 'Connecting' }).waitFor()
      await page.getByRole('link', { name: 'Lists', exact: true }).click()
      await waits.first().waitFor()
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await waits.first().waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'Lists', exact: true }).waitFor()
    expect(await page.title()).toBe('Lists · instance · Device intelligence')
  })

  it.each([
    ['postgres', 'Cases', /^[\d,]+ cases?$/],
    ['clickhouse', 'Fleet', /^SDK versions$|^No telemetry in this time$/],
  ] as const)('a page says that %s hangs, and comes back by itself', async (server, name, text) => {
    const { page } = story
    await page.goto('/t/instance/overview')
    await settle(page)
    const silent = page.getByText('has not answered for 5 seconds')
    const stopped = signalTree(story.stack.pids[server], 'SIGSTOP')
    try {
      expect(stopped.length).toBeGreaterThan(0)
      await page.getByRole('link', { name, exact: true }).click()
      await silent.first().waitFor()
      await page.reload()
      await silent.first().waitFor()
    } finally {
      for (const pid of stopped) process.kill(pid, 'SIGCONT')
    }
    await page.getByText(text).first().waitFor()
    expect(await silent.count()).toBe(0)
  })
})

describe('behind a proxy, under a path', () => {
  let proxy: Server
  let target = ''
  let proxied: WatchedPage

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
    running = await startStack({ dataDir, env: { PUBLIC_URL: base } })
    target = running.stack.console
    proxied = await openPage(story.browser, { baseURL: base })
  })
  afterAll(() => {
    proxy?.closeAllConnections()
    proxy?.close()
  })

  it('works at every address of it, and through a proxy that keeps the path', async () => {
    const { page, faults } = proxied
    await page.goto('manage/integrations/instance')
    await signInOn(page, story)
    await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    await page.getByRole('link', { name: 'Tenants' }).click()
    await page.getByRole('link', { name: 'instance', exact: true }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/tools/di/manage/tenants')
    await page.reload()
    await page.getByRole('link', { name: 'instance', exact: true }).waitFor()
    const { status } = await fetch(`${target}/tools/di/admin/v1/session`)
    expect(status).toBe(401)
    expect((await fetch(`${target}/tools/other`)).status).toBe(404)
    await signOutOn(page, story.name)
    expect(faults).toEqual([])
  })
})
