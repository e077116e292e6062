/** What is set and looked up of a tenant: signatures, retention, analysts, and the help. */
import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { findViolations } from '../../../support/console/accessibility.ts'
import { confirmAs } from '../../../support/console/controls.ts'
import { tellStory } from '../../../support/console/story.ts'
import { toBody } from '../../../support/http/tenant-client.ts'

const slug = 'settings'
const story = tellStory(slug)
const { button, inDialog, expectNoFault, read } = story

describe('the signature debugger', () => {
  it('explains what is wrong with a signature, and confirms a valid one', async () => {
    const { page } = story
    const body = toBody(slug)
    const digest = createHmac('sha256', story.tenant.hmac_secret).update(body).digest()
    await page.goto(`/manage/integrations/${slug}`)
    await page.getByRole('link', { name: 'Signature debugger' }).click()
    await page.getByLabel('X-Service-Signature').fill(digest.toString('hex'))
    await page.getByLabel('Body', { exact: true }).fill(body)
    await button('Check').click()
    const wrong = page.getByRole('list', { name: 'What is wrong' }).getByRole('listitem')
    await wrong.getByText('The signature is in hex.').waitFor()
    expect(await wrong.count()).toBe(1)
    const answer = await fetch(`${story.stack.ingest}/v1/rasp/ingest`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-signature': digest.toString('hex'),
      },
      body,
    })
    const sha256 = createHash('sha256').update(body).digest('hex')
    expect(await answer.json()).toMatchObject({
      code: 'signature_invalid',
      signature_form: await page.getByText('; base64 of 32 bytes expected').textContent(),
      received: { bytes: body.length, sha256 },
    })
    await page.getByLabel('X-Service-Signature').fill(digest.toString('base64'))
    await button('Check').click()
    await page.getByText('The edge accepts this submission.').waitFor()
    expect(await page.content()).not.toContain(story.tenant.hmac_secret)
  })
})

describe('Admin', () => {
  it('changes retention periods, and requires the slug where data may be removed', async () => {
    const { page } = story
    await page.goto('/manage/retention')
    await page.getByRole('row').nth(1).waitFor()
    await page.goto(`/manage/retention?tenant=${slug}`)
    await page.getByLabel('Deliveries', { exact: true }).selectOption('days')
    await page.getByLabel('Days of deliveries').fill('14')
    expect(await inDialog('Save').isDisabled()).toBe(true)
    await page.getByLabel(`Type ${slug} to confirm`).fill(slug)
    expect(await findViolations(page)).toEqual([])
    await inDialog('Save').click()
    // The row itself may be out of view among those of the other stories' tenants.
    const saved = page.getByText(`The retention of ${slug} is changed.`)
    await confirmAs(page, story.password, saved)
    expect(await read('')).toMatchObject({
      retention: { deliveries: { days: 14, default: false }, events: { default: true } },
    })
  })

  it('creates an analyst, whose password is shown once, resets and removes it', async () => {
    const { page } = story
    const list = async () => (await read<{ data: { name: string }[] }>('/analysts')).data
    await page.goto(`/manage/analysts?tenant=${slug}`)
    await page.getByText(`${slug} has no analyst`).waitFor()
    await button('Create an analyst').click()
    await inDialog('Create').click()
    const once = page.getByText('The password is shown only now.')
    await confirmAs(page, story.password, once)
    await page.getByText('This user has the views of one tenant and is no wall').waitFor()
    expect(await findViolations(page)).toEqual([])
    await button('I have saved it').click()
    await button('New password of analyst').click()
    await inDialog('Give a new password').click()
    await page.getByText('The password is shown only now.').waitFor()
    await button('I have saved it').click()
    await page.getByRole('cell', { name: 'analyst', exact: true }).waitFor()
    expect(await list()).toMatchObject([{ name: 'analyst' }])
    await button('Remove analyst').click()
    await inDialog('Remove').click()
    await page.getByText(`${slug} has no analyst`).waitFor()
    expect(await list()).toEqual([])
  })
})

describe('help', () => {
  it('explains signing and has both references, which the search finds by function', async () => {
    const { page } = story
    await page.goto('/help')
    await page.getByText('Sign telemetry').waitFor()
    for (const [tab, find, path] of [
      ['Ingest and REST API', 'submit telemetry', '/v1/rasp/ingest'],
      ['Admin API', 'why a signature', '/admin/v1/tenants/{tenant_id}/signature-check'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByLabel('Find a call').fill(find)
      await page.getByText(path, { exact: true }).click()
      await expectNoFault()
    }
  })
})
