/** Erasures: begun with the id typed, going on without the page, and their receipt. */
import { describe, expect, it } from 'vitest'
import { replicationLease } from '#shared/io/analytics/replication-store.ts'
import type { Erasure } from '#shared/io/erasure/erasure-job-store.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { confirmAs } from '../../../support/console/controls.ts'
import { tellStory } from '../../../support/console/story.ts'
import { testLog } from '../../../support/http/console-rig.ts'
import { admin } from '../../../support/http/tenant-client.ts'
import { patientMs, until } from '../../../support/process/until.ts'

const hooked = { debugger: { frida_detected: true, native_hooks: true } }

/** While this lease is taken, erasures wait halfway: alerts are erased and the rest is not. */
async function holdErasures(postgresUrl: string): Promise<() => Promise<void>> {
  const postgres = createPostgres(postgresUrl, { role: 'test', log: testLog })
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const leases = { renewals: postgres, work: postgres }
  const hold = async () => {
    begin()
    await released
  }
  const holding = withLease(leases, replicationLease, hold, patientMs)
  await begun
  return async () => {
    release()
    await holding
    await postgres.close()
  }
}

const story = tellStory('forgetful')
const { expectNoFault } = story
const erasures = async () => (await story.read<{ data: Erasure[] }>('/erasures')).data

describe('an erasure', () => {
  it('begins once the id is typed, and continues while other pages are open', async () => {
    const { page: erasing, password } = story
    await story.send({ device: 'test-block', signals: hooked })
    const of = (name: string) =>
      erasing.getByRole('dialog').getByRole('button', { name, exact: true })
    await erasing.goto('/manage/erasure?tenant=forgetful')
    await erasing.getByLabel('Device id').fill('test-block')
    await erasing.getByRole('button', { name: 'Erase', exact: true }).click()
    await erasing.getByLabel('Type test-block to confirm').fill('test-bloc')
    expect(await of('Erase').isDisabled()).toBe(true)
    await erasing.getByLabel('Type test-block to confirm').fill('test-block')
    // The erasure waits halfway until the test has seen it there.
    const release = await holdErasures(story.stack.postgres)
    try {
      await of('Erase').click()
      const progress = erasing.getByRole('heading', { name: 'Progress' })
      await confirmAs(erasing, password, progress)
      expect(new URL(erasing.url()).searchParams.get('id')).toBe(null)
      const ofPostgres = erasing.getByRole('listitem').filter({ hasText: 'Postgres' })
      await ofPostgres.getByText('erased', { exact: true }).waitFor()
      await expectNoFault(erasing)
      const [running] = await erasures()
      expect(running).toMatchObject({ state: 'running', receipt: null })
      expect(running!.progress[0]).toMatchObject({ store: 'postgres', state: 'erased' })

      // It continues without the page, and is listed when the operator returns.
      await erasing.goto('/help')
      await erasing.goto('/manage/erasure?tenant=forgetful')
      await progress.waitFor()
      await ofPostgres.getByText('erased', { exact: true }).waitFor()
    } finally {
      await release()
    }
    await erasing.goto('/help')
  })

  it('counts the erased rows, and the API has no data of the device', async () => {
    const { page: erasing } = story
    const done = await until('it is done', async () => {
      const [erasure] = await erasures()
      return erasure?.state === 'done' ? erasure : null
    })
    await erasing.goto('/manage/erasure?tenant=forgetful')
    const list = erasing.getByRole('region', { name: 'Erasures of this tenant' })
    await list.getByRole('cell', { name: 'done' }).waitFor()
    await list.getByRole('cell', { name: 'device' }).click()
    const counts = erasing.getByRole('region', { name: 'What each store held' })
    await counts.waitFor()
    await expectNoFault(erasing)
    const rows = await counts.getByRole('row').allTextContents()
    const shown = Object.entries(done.receipt!.counts).map(
      ([store, { before, after }]) => `${store}${before}${after}`,
    )
    // The rows below the visible ones are drawn when they are scrolled to.
    const drawn = rows.slice(1).filter((text) => text !== '')
    expect(drawn).toEqual(shown.slice(0, drawn.length))
    expect(drawn.length).toBeGreaterThan(15)
    const table = counts.getByRole('table')
    expect(await table.getAttribute('aria-rowcount')).toBe(String(shown.length + 1))
    expect(done.receipt!.counts['postgres.alerts']).toEqual({ before: 1, after: 0 })
    expect(new URL(erasing.url()).searchParams.get('erasure')).toBe(done.erasure_id)

    // A second erasure begins on the page of its device, which leads to this page.
    await story.send({ device: 'test-review', signals: hooked })
    await until('the device is there', () => story.read('/devices/test-review'))
    await erasing.goto('/t/forgetful/devices/test-review')
    await erasing.getByRole('button', { name: 'Erase this device' }).click()
    await erasing.getByLabel('Type test-review to confirm').fill('test-review')
    await erasing.getByRole('dialog').getByRole('button', { name: 'Erase', exact: true }).click()
    await erasing.waitForURL(/manage\/erasure/)
    await counts.waitFor()
    const [second] = await erasures()
    expect(new URL(erasing.url()).searchParams.get('erasure')).toBe(second!.erasure_id)
    expect(second!.receipt!.counts['clickhouse.devices']).toEqual({ before: 1, after: 0 })
    const path = '/tenants/forgetful/deliveries'
    expect(await admin(story.stack, 'GET', path)).toMatchObject({ data: [] })
    const { data } = await admin<{ data: { action: string }[] }>(
      story.stack,
      'GET',
      '/tenants/forgetful/audit',
    )
    expect(data.map(({ action }) => action)).toContain('erasure.done')
  })
})
