/** How far a fleet attests, a tenant's apps, and why evidence of a phone is rejected. */
import type { Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { confirmAs } from '../../../support/console/controls.ts'
import { tellStory } from '../../../support/console/story.ts'
import { toBody } from '../../../support/http/tenant-client.ts'
import {
  androidApp,
  playKeys,
  toChainEvidence,
} from '../../../support/installs/evidence-fixtures.ts'
import {
  fetchChallenge,
  register,
  registrationOf,
  sendRegistration,
  sendWithToken,
} from '../../../support/installs/install-client.ts'
import { runDi } from '../../../support/process/command-line.ts'
import { until } from '../../../support/process/until.ts'

type Coverage = {
  totals: { events: number; install_key: number; missing: number }
  versions: { sdk_version: string; events: number }[]
  reasons: { reason: string; registrations: number }[]
}

type Apps = { data: { id: string; signers: string[]; play_keys: boolean }[] }

const story = tellStory('attested')
const { expectNoFault } = story
const readApps = async () => (await story.read<Apps>('/apps')).data
/** Presses a button of a dialog, and confirms the password prompt if it comes. */
async function confirm(name: string, done: Locator): Promise<void> {
  await story.inDialog(name).click()
  await confirmAs(story.page, story.password, done)
}

it('shows who signs with install keys before the shared secret is switched off, and why not all', async () => {
  const { page, stack, tenant } = story
  const readCoverage = () => story.read<Coverage>('/attestation-coverage')
  await story.send({ device: 'old-phone' })
  await until('it is counted', async () => (await readCoverage()).totals.events === 1)
  await page.goto('/manage/integrations/attested')
  await page.getByText('No registration was rejected.').waitFor()
  const before = (await readCoverage()).totals
  expect(before).toMatchObject({ install_key: 0, missing: before.events })

  const edge = { url: stack.ingest }
  const signer = { tenantId: 'attested', secret: tenant.hmac_secret }
  const install = await register(edge, signer, 'phone-1')
  const body = toBody('attested', { device: 'phone-1', session: 'covered' })
  expect((await sendWithToken(edge, body, install)).status).toBe(200)
  const challenge = await fetchChallenge(edge)
  const evidence = toChainEvidence(Buffer.from(challenge, 'base64url'))
  const forged = await registrationOf(edge, signer, {
    device_id: 'phone-2',
    challenge,
    evidence,
  })
  expect((await sendRegistration(edge, signer, forged)).status).toBe(200)
  const found = await until('it is stored', async () => {
    const read = await readCoverage()
    return read.totals.install_key === 1 && read.reasons.length === 1 ? read : null
  })
  expect(found.totals.events).toBe(before.events + 1)
  expect(found.reasons).toMatchObject([{ reason: 'untrusted_root', registrations: 1 }])

  await page.reload()
  await page.getByText(`${before.events} event`).first().waitFor()
  await page.getByText(`of ${found.totals.events} would be refused`).waitFor()
  await page.getByRole('row', { name: /^android 4\.2\.0/ }).waitFor()
  await page.getByRole('row', { name: /^untrusted_root The chain does not end/ }).waitFor()
  await page.getByText('No key or certificate is on more than it is for.').waitFor()
  await expectNoFault()
  await page.getByRole('button', { name: 'Switch the shared secret off' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(`of ${found.totals.events} would have been refused.`).waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()

  const env = { CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
  const printed = await runDi(['attestation', 'coverage', 'attested'], env)
  expect(printed.stdout).toMatch(/^android +4\.2\.0 +\d+ /m)
  expect(printed.stdout).toMatch(/^untrusted_root +key_attestation +1 +1 /m)
  const json = await runDi(['attestation', 'coverage', 'attested', '--json'], env)
  expect(JSON.parse(json.stdout)).toMatchObject({ totals: found.totals })
})

it('names an app with its signer and its Play keys, which are not shown again', async () => {
  const { page } = story
  await page.getByText('There are no apps yet.').waitFor()
  await page.getByRole('button', { name: 'Add an app' }).click()
  await page.getByLabel('Package').fill(androidApp.id)
  await page.getByLabel('Signing certificates').fill('no digest')
  await page.getByLabel('Play decryption key').fill(playKeys.decryption_key)
  await page.getByLabel('Play verification key').fill(playKeys.verification_key)
  await page.getByText('Going back to keys that Google manages').waitFor()
  await expectNoFault()
  await confirm('Add', page.getByText("must be the SHA-256 of a signer's"))
  await page.getByLabel('Signing certificates').fill(androidApp.signers.join('\n'))
  const row = page.getByRole('row', { name: /Android com\.example\.bank .* set/ })
  await confirm('Add', row)
  expect(await readApps()).toMatchObject([{ ...androidApp, play_keys: true }])
  expect(await page.content()).not.toContain(playKeys.decryption_key)
})

it('shows each step of evidence that is pasted, and what to do', async () => {
  const { page } = story
  const registration = {
    challenge: Buffer.alloc(40, 7).toString('base64url'),
    app: { platform: 'android', id: androidApp.id },
    evidence: toChainEvidence(Buffer.alloc(40, 7)),
  }
  await page.getByRole('link', { name: 'Attestation' }).click()
  await page.getByLabel('Evidence').fill('hello')
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByText('must be a chain in PEM').waitFor()
  await page.getByLabel('Evidence').fill(JSON.stringify(registration))
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByText('rejected: untrusted_root').waitFor()
  await page.getByText('The chain does not end at a root of Google or Apple').waitFor()
  await page.getByText('the last certificate is of CN=Test Android root').waitFor()
  await page.goto('/manage/integrations/attested')
})

it('removes an app, after it was asked', async () => {
  const { page } = story
  await page.getByRole('button', { name: `Remove the android app ${androidApp.id}` }).click()
  await page.getByText('Its Play keys are forgotten').waitFor()
  await confirm('Remove', page.getByText('There are no apps yet.'))
  expect(await readApps()).toEqual([])
})
