/** The part of the console's story about one tenant's integration: programs and the request log. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { admin, ingest, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** The results of earlier tests: an administrator on the page of the tenant. */
export type IntegrationStory = {
  running: TestStack
  page: Page
  password: string
  tenant: Tenant
}

type Requests = {
  data: {
    request_id: string
    status: number
    reason: string | null
    verified: boolean
    device_id: string | null
    event_id: string | null
  }[]
  silent_edges: string[]
}

/** Adds the tests. */
export function describeIntegration(getStory: () => IntegrationStory): void {
  const read = (query = '') =>
    admin<Requests>(getStory().running.stack, 'GET', `/tenants/acme/requests${query}`)
  const submissions = () => getStory().page.getByRole('region', { name: 'Submissions' })

  async function expectNoFault(): Promise<void> {
    expect(await findViolations(getStory().page)).toEqual([])
    expect(await findOverflow(getStory().page)).toBe(0)
  }

  it('has programs that sign, with the address of ingest and the tenant filled in', async () => {
    const { page, running, tenant } = getStory()
    const address = `${running.stack.ingest}/`
    const programs = page.getByRole('tabpanel')
    const shownProgram = programs.locator('pre')
    await page.getByRole('tab', { name: 'Python' }).click()
    await programs.getByText(running.stack.ingest).waitFor()
    const code = (await shownProgram.textContent()) ?? ''
    expect(code).toContain(String.raw`\"tenant_id\":\"acme\"`)
    const env = { PATH: process.env.PATH, HMAC_SECRET: tenant.hmac_secret }
    const { stdout } = await promisify(execFile)('python3', ['-c', code], { env })
    expect(stdout).toMatch(/^200 .*"status":"accepted"/)
    for (const name of ['Java', 'Kotlin', 'Swift', 'Go', 'PHP', 'Ruby', 'C#', 'Dart']) {
      await page.getByRole('tab', { name, exact: true }).click()
      const shown = await shownProgram.textContent()
      expect(shown, name).toContain(running.stack.ingest)
      expect(shown, name).toMatch(/\\?"tenant_id\\?":\\?"acme\\?"/)
    }
    const reading = page.getByRole('region', { name: 'Reading with curl' })
    const curl = (await reading.locator('pre').textContent()) ?? ''
    expect(curl).toContain(`${running.stack.api}/v1/di/devices/device-1`)
    const key = { PATH: process.env.PATH, API_KEY: tenant.public_api_key }
    await until('the session is read', async () => {
      const { stdout: read } = await promisify(execFile)('sh', ['-c', curl], { env: key })
      return read.includes('"session_id":"session-1"')
    })
    await page.getByLabel('Address of ingest').fill('https://in.example/')
    await programs.getByText('https://in.example').waitFor()
    await page.getByLabel('Address of ingest').fill(address)
    await page.reload()
    await page.getByLabel('Address of ingest').waitFor()
    expect(await page.getByLabel('Address of ingest').inputValue()).toBe(address)
    await expectNoFault()
  })

  it('shows submissions as they arrive, filters rejected ones, and links to events', async () => {
    const { page, running, tenant } = getStory()
    await page.getByRole('link', { name: 'Request log' }).click()
    await submissions().getByText('device-1').first().waitFor()
    const { status } = await ingest(
      running.stack,
      'x'.repeat(43),
      toBody('acme', { device: 'dev-x' }),
    )
    expect(status).toBe(401)
    const refused = page.getByRole('row', { name: /401 signature_invalid.* not verified .*dev-x/ })
    await refused.waitFor()
    await page.getByLabel('Show').selectOption('Refused')
    await until('the accepted ones are gone', async () => {
      return (await submissions().getByText('200').count()) === 0
    })
    await refused.getByRole('button').click()
    await page.getByText('Not verified: the sender chose').waitFor()
    await expectNoFault()
    const { data, silent_edges: silent } = await read('?outcome=refused')
    expect(silent).toEqual([])
    expect(data[0]).toMatchObject({
      status: 401,
      reason: 'signature_invalid',
      verified: false,
      device_id: 'dev-x',
      event_id: null,
    })
    await page.getByRole('button', { name: `Copy ${data[0]!.request_id}` }).waitFor()

    await page.getByLabel('Show').selectOption('Accepted')
    const body = toBody('acme', { device: 'dev-y' })
    const { body: answer } = await ingest(running.stack, tenant.hmac_secret, body)
    await page.mouse.move(0, 0)
    await submissions().getByText('dev-y').waitFor()
    await page
      .getByRole('row', { name: /200.*dev-y/ })
      .getByRole('button')
      .click()
    const chosen = page.url()
    await page.getByRole('link', { name: 'Open the event' }).click()
    await until('the event is open', () => page.url().includes(answer.event_id!))
    expect((await read()).data.find(({ event_id: id }) => id === answer.event_id)).toMatchObject({
      status: 200,
      verified: true,
      device_id: 'dev-y',
    })
    await page.goto(chosen)
    await page.getByRole('link', { name: 'Open the event' }).waitFor()
  })

  it('shows the same at the terminal, also the confirmations of the rotation', async () => {
    const { stack } = getStory().running
    const env = { ...process.env, CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
    const di = async (...words: string[]) => {
      const program = ['services/console/cli.ts', ...words]
      const { stdout } = await promisify(execFile)(process.execPath, program, { env })
      return stdout
    }
    const refused = await di('requests', 'acme', '--refused')
    expect(refused).toMatch(/401 signature_invalid +signature_invalid +\? dev-x/)
    expect(refused).toContain('Texts after ? are not verified')
    expect(refused).not.toContain('accepted')
    expect(await di('requests', 'acme')).toMatch(/200 accepted .* dev-y/)
    const { data } = JSON.parse(await di('requests', 'acme', '--json')) as Requests
    expect(data.map(({ device_id: id }) => id)).toContain('dev-x')
    const rotation = await di('tenants', 'rotation', 'acme')
    expect(rotation).toMatch(/^state +done$/m)
    expect(rotation).toMatch(/ confirmed .* confirmed /)
  })

  it('freezes the list while the pointer is on it', async () => {
    const { page, running, tenant } = getStory()
    await submissions().hover()
    const rows = () => submissions().getByRole('row').allTextContents()
    const before = (await rows()).length
    await ingest(running.stack, tenant.hmac_secret, toBody('acme', { device: 'dev-z' }))
    await page.getByText('1 new when the pointer leaves').waitFor()
    expect(await rows()).toHaveLength(before)
    await page.mouse.move(0, 0)
    await submissions().getByText('dev-z').waitFor()
  })

  it('explains an empty log and a failed one, and names an edge that does not answer', async () => {
    const { page } = getStory()
    const empty = { tenant_id: 'acme', data: [], edges: [], silent_edges: ['edge-of-this-test'] }
    const path = '**/admin/v1/tenants/acme/requests?*'
    await page.route(path, (route) => route.fulfill({ json: empty }))
    await page.goto('/manage/integrations/acme/requests')
    await page.getByText('No edge remembers a submission').waitFor()
    await page.getByText('edge-of-this-test').waitFor()
    await expectNoFault()
    await page.unroute(path)
    const problem = { status: 503, code: 'unavailable', detail: 'The edges cannot be queried.' }
    await page.route(path, (route) => route.fulfill({ status: 503, json: problem }))
    await page.goto('/manage/integrations/acme/requests?outcome=refused')
    await page.getByText('The edges cannot be queried.').waitFor()
    await expectNoFault()
    await page.unroute(path)
    await page.goto('/manage/integrations/acme')
    await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
  })

  it('sets rates, suspends and resumes the tenant, and makes and removes a named key', async () => {
    const { page, running, password } = getStory()
    const { stack } = running
    const dialog = page.getByRole('dialog')
    const inDialog = (name: string) => dialog.getByRole('button', { name, exact: true })
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const readTenant = () => admin<Record<string, unknown>>(stack, 'GET', '/tenants/acme')
    await page.goto('/manage/integrations/acme')
    await button('Set the rates').click()
    const ofRest = dialog.getByRole('group', { name: 'REST API' })
    await ofRest.getByLabel('A second').fill('70')
    await ofRest.getByLabel('At once').fill('140')
    await inDialog('Save').click()
    await page.getByText('70 calls a second, 140 at once').waitFor()
    expect(await readTenant()).toMatchObject({ rest_rate: { per_second: 70, burst: 140 } })
    await button('Suspend').click()
    await inDialog('Suspend').click()
    await button('Resume').click()
    await button('Suspend').waitFor()
    expect(await readTenant()).toMatchObject({ status: 'active' })

    await button('Create a key').click()
    await dialog.getByLabel('Name').fill('nightly')
    await dialog.getByRole('button', { name: 'Create', exact: false }).last().click()
    const made = page.getByRole('heading', { name: 'The key nightly of acme' })
    const asked = page.getByRole('heading', { name: 'Confirm that it is you' })
    await made.or(asked).waitFor()
    if (await asked.isVisible()) {
      await dialog.getByLabel('Password').fill(password)
      await inDialog('Confirm').click()
    }
    await made.waitFor()
    const key = (await dialog.locator('code').textContent()) ?? ''
    const read = () =>
      fetch(`${stack.api}/v1/di/alerts`, { headers: { authorization: `Bearer ${key}` } })
    await until('the key reads alerts', async () => (await read()).status === 200)
    await inDialog('I have saved it').click()
    await button('Remove nightly').click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await button('Remove nightly').waitFor({ state: 'detached' })
    await until('the key is refused', async () => (await read()).status === 401)
  })

  it('says that it waits while the console is frozen, and goes on by itself', async () => {
    const { page, running } = getStory()
    const { console: pid } = running.stack.pids
    const waits = page.getByText('The console has not answered for 5 seconds.')
    await page.goto('/t/acme/alerts')
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
    expect(await page.title()).toBe('Lists · acme · Device intelligence')
    await page.goto('/manage/integrations/acme')
  })
}
