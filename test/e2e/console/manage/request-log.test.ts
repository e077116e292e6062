/** One tenant's integration: programs that sign, its request log, rates and named keys. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { confirmAs } from '../../../support/console/controls.ts'
import { tellStory } from '../../../support/console/story.ts'
import { ingest, toBody } from '../../../support/http/tenant-client.ts'
import { runDi } from '../../../support/process/command-line.ts'
import { until } from '../../../support/process/until.ts'

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

const story = tellStory('requests')
const { button, expectNoFault, inDialog } = story
const read = (query = '') => story.read<Requests>(`/requests${query}`)
const submissions = () => story.page.getByRole('region', { name: 'Submissions' })

it('has programs that sign, with the address of ingest and the tenant filled in', async () => {
  const { page, stack, tenant } = story
  await page.goto('/manage/integrations/requests')
  const address = `${stack.ingest}/`
  const programs = page.getByRole('tabpanel')
  const shownProgram = programs.locator('pre')
  await page.getByRole('tab', { name: 'Python' }).click()
  await programs.getByText(stack.ingest).waitFor()
  const code = (await shownProgram.textContent()) ?? ''
  expect(code).toContain(String.raw`\"tenant_id\":\"requests\"`)
  const env = { PATH: process.env.PATH, HMAC_SECRET: tenant.hmac_secret }
  const { stdout } = await promisify(execFile)('python3', ['-c', code], { env })
  expect(stdout).toMatch(/^200 .*"status":"accepted"/)
  for (const name of ['Java', 'Kotlin', 'Swift', 'Go', 'PHP', 'Ruby', 'C#', 'Dart']) {
    await page.getByRole('tab', { name, exact: true }).click()
    const shown = await shownProgram.textContent()
    expect(shown, name).toContain(stack.ingest)
    expect(shown, name).toMatch(/\\?"tenant_id\\?":\\?"requests\\?"/)
  }
  const reading = page.getByRole('region', { name: 'Reading with curl' })
  const curl = (await reading.locator('pre').textContent()) ?? ''
  expect(curl).toContain(`${stack.api}/v1/di/devices/device-1`)
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
})

it('shows submissions as they arrive, filters rejected ones, and links to events', async () => {
  const { page, stack, tenant } = story
  await page.getByRole('link', { name: 'Request log' }).click()
  await submissions().getByText('device-1').first().waitFor()
  const { status } = await ingest(stack, 'x'.repeat(43), toBody('requests', { device: 'dev-x' }))
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
  const body = toBody('requests', { device: 'dev-y' })
  const { body: answer } = await ingest(stack, tenant.hmac_secret, body)
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

it('shows the same at the terminal', async () => {
  const { stack } = story
  const env = { CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
  const di = async (...words: string[]) => (await runDi(words, env)).stdout
  const refused = await di('requests', 'requests', '--refused')
  expect(refused).toMatch(/401 signature_invalid +signature_invalid +\? dev-x/)
  expect(refused).toContain('Texts after ? are not verified')
  expect(refused).not.toContain('accepted')
  expect(await di('requests', 'requests')).toMatch(/200 accepted .* dev-y/)
  const { data } = JSON.parse(await di('requests', 'requests', '--json')) as Requests
  expect(data.map(({ device_id: id }) => id)).toContain('dev-x')
})

it('freezes the list while the pointer is on it', async () => {
  const { page, stack, tenant } = story
  await submissions().hover()
  const rows = () => submissions().getByRole('row').allTextContents()
  const before = (await rows()).length
  await ingest(stack, tenant.hmac_secret, toBody('requests', { device: 'dev-z' }))
  await page.getByText('1 new when the pointer leaves').waitFor()
  expect(await rows()).toHaveLength(before)
  await page.mouse.move(0, 0)
  await submissions().getByText('dev-z').waitFor()
})

it('explains an empty log and a failed one, and names an edge that does not answer', async () => {
  const { page } = story
  const empty = { tenant_id: 'requests', data: [], edges: [], silent_edges: ['edge-of-this-test'] }
  const path = '**/admin/v1/tenants/requests/requests?*'
  await page.route(path, (route) => route.fulfill({ json: empty }))
  await page.goto('/manage/integrations/requests/requests')
  await page.getByText('No edge remembers a submission').waitFor()
  await page.getByText('edge-of-this-test').waitFor()
  await page.unroute(path)
  const problem = { status: 503, code: 'unavailable', detail: 'The edges cannot be queried.' }
  await page.route(path, (route) => route.fulfill({ status: 503, json: problem }))
  await page.goto('/manage/integrations/requests/requests?outcome=refused')
  await page.getByText('The edges cannot be queried.').waitFor()
  await page.unroute(path)
  await page.goto('/manage/integrations/requests')
  await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
})

it('sets rates, suspends and resumes the tenant, and makes and removes a named key', async () => {
  const { page, stack, password } = story
  const dialog = page.getByRole('dialog')
  const readTenant = () => story.read<Record<string, unknown>>('')
  await page.goto('/manage/integrations/requests')
  await button('Set the rates').click()
  const ofRest = dialog.getByRole('group', { name: 'REST API' })
  await ofRest.getByLabel('A second').fill('70')
  await ofRest.getByLabel('At once').fill('140')
  await inDialog('Save').click()
  await page.getByText('70 calls a second, 140 at once').waitFor()
  expect(await readTenant()).toMatchObject({ rest_rate: { per_second: 70, burst: 140 } })
  await button('Suspend').click()
  await inDialog('Suspend').click()
  await confirmAs(page, password, button('Resume'))
  await button('Resume').click()
  await button('Suspend').waitFor()
  expect(await readTenant()).toMatchObject({ status: 'active' })

  await button('Create a key').click()
  await dialog.getByLabel('Name').fill('nightly')
  await dialog.getByRole('button', { name: 'Create', exact: false }).last().click()
  const made = page.getByRole('heading', { name: 'The key nightly of requests' })
  await confirmAs(page, password, made)
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
