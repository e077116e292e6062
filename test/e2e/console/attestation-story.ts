/** The part of the console's story about a tenant's apps, and why evidence of a phone is rejected. */
import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { androidApp, playKeys, toChainEvidence } from '../../support/installs/evidence-fixtures.ts'
import type { TestStack } from '../../support/process/stack.ts'

/** The results of earlier tests: an administrator on the page of the tenant. */
export type AttestationStory = { running: TestStack; page: Page; password: string }

type Apps = { data: { id: string; signers: string[]; play_keys: boolean }[] }

/** Adds the tests. */
export function describeAttestation(getStory: () => AttestationStory): void {
  const readApps = async () =>
    (await admin<Apps>(getStory().running.stack, 'GET', '/tenants/acme/apps')).data
  const expectNoFault = async () => {
    expect(await findViolations(getStory().page)).toEqual([])
    expect(await findOverflow(getStory().page)).toBe(0)
  }
  /** Presses a button of a dialog, and confirms the password prompt if it comes. */
  async function confirm(name: string, done: Locator): Promise<void> {
    const { page, password } = getStory()
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
    const prompt = page.getByRole('heading', { name: 'Confirm that it is you' })
    await done.or(prompt).first().waitFor()
    if (await prompt.isVisible()) {
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Confirm', exact: true }).click()
    }
    await done.waitFor()
  }

  it('names an app with its signer and its Play keys, which are not shown again', async () => {
    const { page } = getStory()
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
    await expectNoFault()
  })

  it('shows each step of evidence that is pasted, and what to do', async () => {
    const { page } = getStory()
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
    await expectNoFault()
    await page.goto('/manage/integrations/acme')
  })

  it('removes an app, after it was asked', async () => {
    const { page } = getStory()
    await page.getByRole('button', { name: `Remove the android app ${androidApp.id}` }).click()
    await page.getByText('Its Play keys are forgotten').waitFor()
    await confirm('Remove', page.getByText('There are no apps yet.'))
    expect(await readApps()).toEqual([])
  })
}
