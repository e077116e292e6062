/** A tenant's webhook: failed deliveries, replays, tests, pauses and a new address. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tellStory } from '../../support/console/story.ts'
import { type Receiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'

type Delivery = {
  delivery_id: string
  alert_id: string | null
  event: string
  state: string
  attempts: { status: number | null }[]
}

const hooked = { debugger: { frida_detected: true, native_hooks: true } }
const slug = 'hooks'
const story = tellStory(slug)
const { button, inDialog, expectNoFault, read } = story
let receiver: Receiver
const deliveries = async () => (await read<{ data: Delivery[] }>('/deliveries')).data

beforeAll(async () => {
  receiver = await startReceiver((response) => response.writeHead(410).end('no longer here'))
  await admin(story.stack, 'PUT', `/tenants/${slug}/webhook`, { url: receiver.url })
})
afterAll(() => receiver?.close())

describe('a webhook', () => {
  it('whose receiver is gone is off; failed deliveries are replayed', async () => {
    const { page } = story
    await story.send({ device: 'test-block', signals: hooked })
    await page.goto(`/t/${slug}/webhooks`)
    await page.getByText('the receiver answered 410 Gone').waitFor()
    await page.getByRole('row').nth(1).getByRole('button').click()
    const request = page.getByRole('region', { name: 'Request of attempt 1' })
    const [failed] = await deliveries()
    expect(failed).toMatchObject({ state: 'failed', attempts: [{ status: 410 }] })
    await request.getByText(failed!.alert_id!).waitFor()
    const response = page.getByRole('region', { name: 'Response to attempt 1' })
    expect(await response.textContent()).toContain('no longer here')
    expect(new URL(page.url()).searchParams.get('delivery')).toBe(failed!.delivery_id)

    receiver.setAnswer((answer) => answer.writeHead(204).end())
    await button('Resume').click()
    await button('Pause').waitFor()
    await button('Replay deliveries').click()
    await page.getByRole('dialog').getByText('1 delivery', { exact: true }).waitFor()
    await expectNoFault()
    await inDialog('Replay 1').click()
    await page.getByText('1 delivery is sent again now.').waitFor()
    await inDialog('Done').click()
    await page.getByText('Attempt 2').waitFor()
    await page.getByRole('cell', { name: 'delivered' }).waitFor()
    expect(await deliveries()).toMatchObject([
      { delivery_id: failed!.delivery_id, state: 'delivered', attempts: [{}, { status: 204 }] },
    ])
    expect(receiver.requests[1]!.body.equals(receiver.requests[0]!.body)).toBe(true)

    await button('Replay').click()
    await page.getByText('Attempt 3').waitFor()
    expect(receiver.requests).toHaveLength(3)
  })

  it('is tested, paused and changed; rejections are shown at their field', async () => {
    const { page } = story
    // While the receiver waits, everything says that it is being sent; then, that it is not.
    const { promise: answering, resolve: answerNow } = Promise.withResolvers<void>()
    receiver.setAnswer((answer) => void answering.then(() => answer.writeHead(503).end()))
    const row = page.getByRole('row').filter({ hasText: 'webhook.test' }).first()
    const said = page.getByRole('status').filter({ hasText: 'The test event' })
    const states = async () => [
      (await said.textContent())?.split('The')[0],
      await row.getByRole('cell').first().textContent(),
      await page
        .locator('dd')
        .filter({ hasText: /^(sending|pending|failed)/ })
        .textContent(),
    ]
    await button('Send a test event').click()
    await row.waitFor()
    expect(await states()).toEqual(['sending', 'sending', 'sending'])
    answerNow()
    await said.getByText('was not delivered: the receiver answered 503.').waitFor()
    await row.getByText('failed', { exact: true }).waitFor()
    receiver.setAnswer((answer) => answer.writeHead(204).end())
    await button('Send a test event').click()
    await said.getByText('was delivered: the receiver answered 204.').waitFor()
    await until('it is delivered', async () => {
      const sent = (await deliveries()).find(({ event }) => event === 'webhook.test')
      return sent?.state === 'delivered'
    })
    await button('Pause').click()
    await button('Resume').waitFor()
    expect(await read('')).toMatchObject({ webhook_state: 'paused' })
    await button('Change the URL').click()
    await page.getByLabel('Webhook URL').fill('http://someone@127.0.0.1:9000/hook')
    await button('Save').click()
    await page.getByText('it carries a user name or password').waitFor()
    expect(await read('')).toMatchObject({ webhook_url: receiver.url })
    await page.getByLabel('Webhook URL').fill(`${receiver.url}/moved`)
    await button('Save').click()
    await button('Change the URL').waitFor()
    expect(await read('')).toMatchObject({
      webhook_url: `${receiver.url}/moved`,
      webhook_state: 'on',
    })
    await page.getByRole('tab', { name: 'Receiver in six languages' }).click()
    await page.getByRole('tab', { name: 'Go', exact: true }).click()
    const code = await page.getByRole('region', { name: 'Receiver in Go' }).textContent()
    expect(code).toContain('/moved')
    expect(code).not.toContain(story.tenant.webhook_secret)
    await expectNoFault()
  })
})
