/** Queries in SQL, the list of events, and what a viewer sees of a tenant. */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { findViolations } from '../../support/console/accessibility.ts'
import { sendLabelled } from '../../support/console/labelled-sessions.ts'
import { makeOperator } from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { admin } from '../../support/http/tenant-client.ts'

type Rows = { columns: { name: string }[]; rows: unknown[][] }

const slug = 'explorer'
const story = tellStory(slug)
const { button, expectNoFault, read } = story
const path = (rest: string) => `/tenants/${slug}${rest}`
const readPolicy = () => read<object>('/policy')
const open = (rest: string) => story.goto(rest.replace(/^\//, ''))

beforeAll(() => sendLabelled(story))

describe('a query in SQL', () => {
  it('shows the rows of the API, is kept, and is in the audit log', async () => {
    const { stack, page, email } = story
    await open('/explore')
    await page.getByRole('button', { name: /^Run/ }).click()
    const rows = page.getByRole('region', { name: 'Rows of the query' }).getByRole('row')
    await rows.nth(1).waitFor()
    const { data } = await read<{
      data: { actor: string; action: string; after: { sql: string } }[]
    }>('/audit')
    const [entry] = data
    expect(entry).toMatchObject({ actor: email, action: 'sql.queried' })
    const { sql } = entry!.after
    const body = { sql }
    const answer = await admin<Rows>(stack, 'POST', path('/sql'), body)
    const texts = await rows.allInnerTexts()
    expect(texts.slice(1).map((text) => text.split('\t'))).toEqual(
      answer.rows.map((row) => row.map(String)),
    )
    await page.getByRole('tab', { name: 'Chart' }).click()
    await page.getByRole('list', { name: 'events by row' }).waitFor()
    await page.getByRole('tab', { name: 'History' }).click()
    await page.getByRole('button', { name: /^select platform/ }).waitFor()
    expect(await findViolations(page)).toEqual([])
  })

  it('is saved on the server under a name, shared, and is in the history of every browser', async () => {
    const { page, stack } = story
    await button('Saved queries').click()
    await page.getByRole('menuitem', { name: 'Save this query' }).click()
    await page.getByLabel('Name').fill('Versions')
    await page.getByLabel('Share it').check()
    await button('Save').click()
    await button('Versions').waitFor()
    const { data } = await read<{ data: object[] }>('/saved-views?kind=sql')
    const sql = expect.stringMatching(/^select platform/)
    expect(data).toMatchObject([{ name: 'Versions', shared: true, query: { sql } }])
    // What a former release kept here is of no use any more.
    await page.evaluate(() => localStorage.setItem('di.sql.explorer', '[]'))
    const hidden = "concat('x', unhex('E280AE'), 'y')"
    const ids = `select ${hidden} as note, ${hidden} as device_id`
    await open(`/explore?${new URLSearchParams({ sql: ids, side: 'history' })}`)
    await page.getByRole('button', { name: /^select platform/ }).waitFor()
    expect(await page.evaluate(() => localStorage.getItem('di.sql.explorer'))).toBeNull()
    await page.getByRole('button', { name: /^Run/ }).click()
    const cells = page.getByRole('region', { name: 'Rows of the query' }).getByRole('cell')
    await cells.first().waitFor()
    // A mark that turns the direction of what follows is shown, and an id is a link.
    expect(await cells.allInnerTexts()).toEqual(['x\\u{202e}y', 'x\\u{202e}y'])
    const link = cells.nth(1).getByRole('link')
    expect(await link.getAttribute('href')).toContain('/devices/x%E2%80%AEy')
    await cells.nth(1).getByRole('button', { name: 'Copy' }).waitFor()
    await button('Saved queries').click()
    await page.getByRole('menuitem', { name: 'Versions' }).click()
    await button('Versions').click()
    await page.getByRole('menuitem', { name: 'Remove this query' }).click()
    await page.getByText('Query Versions removed').waitFor()
    expect(await admin(stack, 'GET', path('/saved-views'))).toEqual({ data: [] })
    await page.getByRole('tab', { name: 'Examples' }).click()
  })

  it('comes from the cookbook with its parameters, and can be exported as CSV', async () => {
    const { page } = story
    await page.getByRole('tab', { name: 'Examples' }).click()
    await page.getByRole('button', { name: /^Which devices form a farm/ }).click()
    await page.getByLabel('devices_min').fill('2')
    await page.getByLabel('findings_min').fill('1')
    await page.getByRole('button', { name: /^Run/ }).click()
    await button('Download CSV').waitFor()
    const download = async (name: string) => {
      const [file] = await Promise.all([page.waitForEvent('download'), button(name).click()])
      return readFileSync(await file.path(), 'utf8')
    }
    const csv = await download('Download CSV')
    expect(csv).toMatch(/^"platform","sdk_version","findings",/)
    expect(csv).toContain('root.magisk_detected')
    expect(await download('Download for Excel')).toBe(`\uFEFF${csv}`)
  })

  it('with an error shows the engine’s message, and no request id for what a person typed', async () => {
    const { page } = story
    await open('/explore?sql=select+no_such_column+from+events')
    await page.getByRole('button', { name: /^Run/ }).click()
    const alert = page.getByRole('alert')
    await alert.waitFor()
    const text = await alert.textContent()
    expect(text).toContain('no_such_column')
    expect(text).not.toContain('Request')
    expect(await findViolations(page)).toEqual([])
  })
})

describe('events', () => {
  it('are found by filters without SQL, and the same ones by the query that they open', async () => {
    const { page, tenant } = story
    const filters = 'action=REVIEW,BLOCK&flag=ROOTED&signal=root.su_binary&min_score=1'
    const { data } = await read<{ data: { event_id: string }[] }>(`/events?${filters}`)
    const ids = data.map(({ event_id }) => event_id)
    expect(ids.length).toBeGreaterThan(0)
    await open(`/events?${filters}`)
    const table = page.getByRole('region', { name: 'Events' })
    await table.getByRole('link').first().waitFor()
    const links = `a[href^="/t/${tenant.tenant_id}/events/"]`
    const shown = await table
      .locator(links)
      .evaluateAll((all) => all.map((one) => one.getAttribute('title')))
    expect(shown).toEqual(ids.slice(0, shown.length))
    await button('Open as SQL').click()
    await page.getByRole('button', { name: /^Run/ }).click()
    const rows = page.getByRole('region', { name: 'Rows of the query' })
    await rows.locator(links).first().waitFor()
    // Whole, and each a link to its event.
    const texts = await rows.locator(links).allInnerTexts()
    expect(texts.toSorted()).toEqual(ids.toSorted())
  })

  it('are counted by a column, and a count opens the list that has so many', async () => {
    const { page, tenant } = story
    const filters = 'action=REVIEW,BLOCK&signal=root.su_binary'
    await open(`/events?${filters}&by=flag&columns=event,sdk,risk`)
    const count = page.getByRole('link', { name: /^Rooted/ })
    const [, devices, events] = /(\d+) devices?(\d+) events?$/
      .exec((await count.textContent())!)!
      .map(Number)
    await count.click()
    await page.waitForURL('**flag=ROOTED**')
    const { data } = await read<{ data: { device_id: string }[] }>(
      `/events?${filters}&flag=ROOTED&limit=500`,
    )
    expect(events).toBeGreaterThan(0)
    expect([new Set(data.map((one) => one.device_id)).size, data.length]).toEqual([devices, events])
    const table = page.getByRole('region', { name: 'Events' })
    await table.getByRole('columnheader', { name: 'SDK version' }).waitFor()
    expect(await table.getByRole('columnheader').count()).toBe(3)
    await expectNoFault()

    await button('Views').click()
    await page.getByRole('menuitem', { name: 'Save these filters as a view' }).click()
    await page.getByLabel('Name').fill('Rooted')
    await page.getByLabel('Share it').check()
    await button('Save').click()
    await button('Rooted').waitFor()
    const { data: views } = await read<{ data: object[] }>('/saved-views?kind=events')
    const query = { flag: 'ROOTED', columns: 'event,sdk,risk', by: 'flag' }
    expect(views).toMatchObject([{ name: 'Rooted', shared: true, query }])
    await open('/events')
    await button('All of the last day').click()
    await page.getByRole('menuitem', { name: 'Rooted' }).click()
    await page.waitForURL('**flag=ROOTED**')

    await button('Export').click()
    const item = page.getByRole('menuitem', { name: 'Download CSV' })
    const [file] = await Promise.all([page.waitForEvent('download'), item.click()])
    expect(file.suggestedFilename()).toBe(`events-${tenant.tenant_id}.csv`)
    const [head, ...rows] = readFileSync(await file.path(), 'utf8')
      .trim()
      .split('\n')
    expect(head).toMatch(/^"received_at","action",/)
    expect(rows).toHaveLength(data.length)
  })
})

describe('a viewer', () => {
  it('reads policies and signals, and can neither publish nor query', async () => {
    const { tenant } = story
    const page = await story.join(makeOperator('Vera', 'viewer'))
    await page.goto(`/t/${slug}/overview`)

    await page.getByRole('link', { name: 'Policies' }).click()
    await page.getByText('in force', { exact: true }).waitFor()
    for (const name of ['Edit the policy', 'Edit from here', 'Roll back to this', 'Publish']) {
      expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0])
    }
    expect(await page.getByRole('link', { name: 'Explore' }).count()).toBe(0)
    const before = await readPolicy()
    const asViewer = (method: string, rest: string, body: unknown) =>
      page.evaluate(
        async ([verb, address, text]) => {
          const headers = { 'content-type': 'application/json' }
          return (await fetch(address!, { method: verb!, headers, body: text! })).status
        },
        [method, `/admin/v1/tenants/${tenant.tenant_id}${rest}`, JSON.stringify(body)],
      )
    expect(await asViewer('PUT', '/policy', { preset: 'strict' })).toBe(403)
    expect(await asViewer('POST', '/sql', { sql: 'select 1' })).toBe(403)
    expect(await readPolicy()).toEqual(before)
    await page.context().close()
  })
})
