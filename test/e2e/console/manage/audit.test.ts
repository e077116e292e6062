/** The audit log: it has every action of an operator, and its filters are in the address. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type AuditedAction, auditedActions } from '#shared/core/audit/audited-actions.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { tellStory } from '../../../support/console/story.ts'
import { admin, toBody } from '../../../support/http/tenant-client.ts'
import { androidApp, toChainEvidence } from '../../../support/installs/evidence-fixtures.ts'
import { until } from '../../../support/process/until.ts'

type Entry = { actor: string; action: AuditedAction; tenant_id: string | null; after: unknown }

/** Actions without an operator: repairs, first roots, and calls with the admin token. */
const notOfPersons: AuditedAction[] = [
  'address_key.created',
  'admin_token.refused',
  'install_root.created',
  'secrets.rewrapped',
  'tenant.creation_undone',
  'tenant.rotation_undone',
]
/** Actions that other tests cover, with other operators, more alerts or another clock. */
const ofOthers: AuditedAction[] = [
  'alert.assignment_undone',
  'alert.bulk_cancelled',
  'alert.bulk_undo_begun',
  'alert.disposition_undone',
  'operator.invitation_withdrawn',
  'operator.oidc_bound',
  'operator.password_changed',
  'operator.recovery_code_used',
  'operator.reset',
  'operator.totp_switched_off',
  'operator.totp_switched_on',
  'proposal.failed',
  'recovery.applied',
  'second_factor.set',
  'tenant.recovered',
  'verdict_keys.rotated',
]
const slug = 'audited'
const hooked = { debugger: { frida_detected: true, native_hooks: true } }

const story = tellStory(slug)
const { expectNoFault } = story

/** Every page: bulk changes have an entry for each alert. */
const listAll = async (filters: string): Promise<Entry[]> => {
  const entries: Entry[] = []
  for (let cursor = ''; ; ) {
    const path = `/audit?tenants=all&limit=500&${filters}${cursor}`
    const page = await admin<{ data: Entry[]; next_cursor: string | null }>(
      story.stack,
      'GET',
      path,
    )
    entries.push(...page.data)
    if (page.next_cursor === null) return entries
    cursor = `&cursor=${page.next_cursor}`
  }
}
/** Calls the admin API as the page does, with the cookie of the operator's session. */
const act = async (method: string, path: string, data?: unknown): Promise<unknown> => {
  const url = `${story.stack.console}/admin/v1${path}`
  const answer = await story.page.request.fetch(url, {
    method,
    headers: { origin: new URL(story.stack.console).origin },
    ...(data === undefined ? {} : { data }),
  })
  const text = await answer.text()
  expect(answer.ok(), `${method} ${path}: ${answer.status()} ${text}`).toBe(true)
  return /^[[{]/.test(text) ? JSON.parse(text) : text
}

/** Every change of cases and saved views. @param alertId one of two open alerts, each in a case */
const workOnCases = async (of: string, alertId: string, email: string): Promise<void> => {
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  type Next = { case: { case_id: string } }
  const one = ((await act('POST', `${of}/cases/next`, {})) as Next).case.case_id
  const other = ((await act('POST', `${of}/cases/next`, {})) as Next).case.case_id
  await act('PUT', `/cases/${one}/assignee`, { assignee: email })
  await act('POST', `/cases/${one}/notes`, { note: 'A note' })
  await act('PUT', `/cases/${one}/snooze`, { until: soon })
  await act('PUT', `/cases/${one}/snooze`, { until: null })
  await act('POST', `/cases/${other}/merge`, { into: one })
  await act('POST', `/cases/${one}/split`, { alert_ids: [alertId] })
  await act('POST', `/cases/${one}/judgement`, { disposition: 'REVIEWED' })
  const hours = { block_due_hours: 2, review_due_hours: 8 }
  await act('PUT', `${of}/case-rules`, { group_by: 'device', reopen_days: 1, ...hours })
  const view = { kind: 'cases', name: 'Mine', query: { assignee: 'me' } }
  const { view_id: viewId } = (await act('POST', `${of}/saved-views`, view)) as {
    view_id: string
  }
  await act('DELETE', `${of}/saved-views/${viewId}`)
}

/** Each end of a proposal that does not fail. Four eyes stay off: else no token proposes. */
const workOnProposals = async (of: string): Promise<void> => {
  type Made = { proposal_id: string }
  const proposals = `${of}/proposals`
  const toBodyOf = (enabled: boolean) => {
    return { kind: 'four_eyes', setting: { enabled }, reason: 'test' }
  }
  const askAsOperator = async () => (await act('POST', proposals, toBodyOf(true))) as Made
  const askByToken = (enabled: boolean) =>
    admin<Made>(story.stack, 'POST', proposals, toBodyOf(enabled))
  const end = ({ proposal_id: id }: Made, how: string) =>
    act('POST', `${proposals}/${id}/${how}`, {})
  await end(await askAsOperator(), 'withdraw')
  await end(await askByToken(true), 'reject')
  // It is void once somebody changes the same directly.
  await askAsOperator()
  await act('PUT', `${of}/four-eyes`, { enabled: false })
  await end(await askByToken(false), 'approve')
}

describe('the audit log', () => {
  let alertId = ''
  let eventId = ''
  beforeAll(async () => {
    const url = 'http://127.0.0.1:10079/'
    await admin(story.stack, 'PUT', `/tenants/${slug}/webhook`, { url })
    // A rejected sign-in is written down within a minute.
    const { origin } = new URL(story.stack.console)
    const refused = await story.page.request.post(`${origin}/admin/v1/session`, {
      headers: { origin },
      data: { email: story.email, password: 'not the password' },
    })
    expect(refused.status()).toBe(401)
    const extra = { device: { brand: 'Google' } }
    const sent = await story.send({ device: 'audited', signals: hooked, extra })
    eventId = sent.event_id!
    await story.send({ device: 'another', signals: hooked, extra })
    alertId = await until('the alerts are raised', async () => {
      const path = `/tenants/${slug}/alerts?limit=2`
      const { data } = await admin<{ data: { alert_id: string }[] }>(story.stack, 'GET', path)
      return data[1]?.alert_id ?? null
    })
  })

  it('has every action of an operator, under their email', async () => {
    const { email, password } = story
    const of = `/tenants/${slug}`
    // Sign-ins, rejected ones, a step-up, and the end of a session.
    await act('POST', '/session', { email, password })
    const { data: own } = (await act('GET', '/sessions')) as {
      data: { session_id: string; current: boolean }[]
    }
    await act('DELETE', `/sessions/${own.find(({ current }) => !current)!.session_id}`)
    await act('POST', '/session/step-up', { password })
    // Reveals, exports and queries.
    await until('the event is stored', async () => {
      const url = `${story.stack.console}/admin/v1/events/${eventId}/body`
      return (await story.page.request.get(url)).ok()
    })
    await act('GET', `${of}/alerts.csv`)
    await act('POST', `${of}/sql`, { sql: 'select 1' })
    const body = toBody(slug)
    await act('POST', `${of}/signature-check`, { body, signature: '' })
    // Alerts, and their cases.
    await workOnCases(of, alertId, email)
    await act('POST', `/alerts/${alertId}/disposition`, { disposition: 'REVIEWED' })
    await act('PUT', `/alerts/${alertId}/assignee`, { assignee: email })
    await act('POST', `/alerts/${alertId}/notes`, { note: 'A note' })
    const bulk = { filter: {}, disposition: 'CONFIRMED', expected_count: 2 }
    await act('POST', `${of}/alerts/bulk-disposition`, bulk)
    // Phones and labels.
    const phoneId = toPhoneId(slug, 'another')
    await until('the phone is decided', async () => {
      const url = `${story.stack.console}/admin/v1${of}/phones/${phoneId}`
      return (await story.page.request.get(url)).ok()
    })
    const wrong = { device_id: 'audited', reason: 'test' }
    await act('POST', `${of}/phone-corrections`, { ...wrong, phone_id: phoneId })
    const split = await act('POST', `${of}/phone-corrections`, { ...wrong, phone_id: null })
    const { correction_id: correctionId } = split as { correction_id: string }
    await act('POST', `${of}/phone-corrections/${correctionId}/undo`)
    await act('POST', `${of}/labels`, { subject: { event_id: eventId }, label: 'chargeback' })
    await act('PUT', `${of}/labels/codes/mule_account`, { means: 'fraud' })
    await act('DELETE', `${of}/labels/codes/mule_account`)
    await workOnProposals(of)
    // Policies, webhooks and deliveries.
    const typed = { text: JSON.stringify(presets.strict), base_version: 1 }
    const draft = (await act('POST', `${of}/drafts`, typed)) as { draft_id: string }
    await act('DELETE', `${of}/drafts/${draft.draft_id}`)
    await act('PUT', `${of}/policy`, { preset: 'strict' })
    await act('PUT', `${of}/policy/shadow`, { preset: 'permissive' })
    await act('DELETE', `${of}/policy/shadow`)
    await act('PUT', `${of}/webhook`, { url: 'http://127.0.0.1:10079/other' })
    const test = (await act('POST', `${of}/deliveries/test`)) as { delivery_id: string }
    await act('GET', `${of}/deliveries/${test.delivery_id}/request`)
    await act('POST', `${of}/deliveries/replay`, { since: '2020-01-01T00:00:00Z' })
    await act('PUT', `${of}/webhook/events`, { events: ['risk.alert', 'alert.updated'] })
    await act('POST', `${of}/unknown-signals/free`)
    await act('POST', `${of}/webhook/pause`)
    await act('POST', `${of}/webhook/resume`)
    await act('DELETE', `${of}/webhook`)
    // Keys, analysts and tenants.
    await act('POST', `${of}/keys`, { name: 'reader', scopes: ['read'] })
    await act('DELETE', `${of}/keys/reader`)
    await act('POST', `${of}/analysts`, { name: 'reader' })
    await act('POST', `${of}/analysts/reader/password`)
    await act('DELETE', `${of}/analysts/reader`)
    await act('PUT', `${of}/retention`, { events: 30 })
    await act('PUT', `${of}/rates`, { rest_rate: { per_second: 50, burst: 100 } })
    await act('POST', `${of}/suspend`)
    await act('POST', `${of}/resume`)
    await act('POST', `${of}/rotate`, { hmac: true })
    await act('POST', `${of}/rotation/keys`, {})
    await act('POST', '/tenants', { tenant_id: 'audited-too', environment: 'sandbox' })
    // Installs.
    const app = { platform: 'ios', id: 'com.example.audited', team: 'ABCDE12345' }
    await act('PUT', `${of}/apps`, app)
    await act('PUT', `${of}/apps`, app)
    await act('DELETE', `${of}/apps/ios/${app.id}`)
    const registration = {
      challenge: Buffer.alloc(40, 7).toString('base64url'),
      app: { platform: 'android', id: androidApp.id },
      evidence: toChainEvidence(Buffer.alloc(40, 7)),
    }
    const evidence = Buffer.from(JSON.stringify(registration)).toString('base64')
    await act('POST', `${of}/attestation-check`, { evidence_base64: evidence })
    await act('POST', `${of}/install-root/rotate`)
    await act('DELETE', `${of}/install-root/previous`)
    await act('PUT', `${of}/shared-secret`, { off: true })
    await act('PUT', `${of}/shared-secret`, { off: false })
    await act('PUT', `${of}/ingest-answer`, { ingest_answer: 'interface' })
    await act('PUT', `${of}/client-address`, { client_address: 'body' })
    await act('PUT', `${of}/store-client-address`, { store_client_address: true })
    await act('POST', `${of}/erasures`, { device_id: 'audited' })
    const entry = { list: 'deny', kind: 'device', id: 'audited', reason: 'test' }
    const listed = (await act('POST', `${of}/lists`, { ...entry, expires_at: null })) as {
      entry_id: string
    }
    await act('DELETE', `${of}/lists/${listed.entry_id}`)
    // Operators.
    const { url } = (await act('POST', '/operators/invitations', {
      email: 'another@example.com',
      role: 'viewer',
    })) as { url: string }
    const { origin } = new URL(story.stack.console)
    const joined = await fetch(`${origin}/admin/v1/invitations/${url.split('#')[1]}`, {
      method: 'POST',
      headers: { origin, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Audited', password: 'some brown hills roll' }),
    })
    const { operator } = (await joined.json()) as { operator: { operator_id: string } }
    await act('POST', `/operators/${operator.operator_id}/reset`)
    await act('PATCH', `/operators/${operator.operator_id}`, { disabled: true })

    // Rejected sign-ins are summed up each minute.
    const find = (action: AuditedAction) => listAll(`actor=${email}&action=${action}`)
    await until(
      'the refused sign-ins are written',
      async () => (await find('operator.sign_in_refused')).length > 0,
    )
    await until('the erasure is done', async () => (await find('erasure.done')).length > 0)
    const missing: string[] = []
    for (const action of auditedActions) {
      if (notOfPersons.includes(action) || ofOthers.includes(action)) continue
      if ((await find(action)).length === 0) missing.push(action)
    }
    expect(missing).toEqual([])
    expect(await find('event.body_read')).toMatchObject([
      { tenant_id: slug, after: { event_id: eventId } },
    ])
    // No entry has a secret.
    const text = JSON.stringify(await listAll(''))
    for (const secret of [password, story.tenant.hmac_secret, story.tenant.webhook_secret]) {
      expect(text).not.toContain(secret)
    }
  })

  it('is filtered by operator, action and time, in the URL', async () => {
    const { page, email } = story
    await page.goto('/manage/audit')
    await page.getByRole('row').nth(2).waitFor()
    await page.getByRole('combobox', { name: 'Who', exact: true }).fill(email)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: /^What/ }).click()
    await page.getByRole('menuitemcheckbox', { name: 'event.body_read' }).click()
    await page.keyboard.press('Escape')
    await page.getByLabel('Time range').selectOption('24h')
    await until('one row is left', async () => (await page.getByRole('row').count()) === 2)
    await page.getByRole('cell', { name: 'event.body_read' }).click()
    await page.getByRole('region', { name: 'After', exact: true }).getByText(eventId).waitFor()
    const { searchParams } = new URL(page.url())
    expect(searchParams.get('actor')).toBe(email)
    expect(searchParams.get('action')).toBe('event.body_read')
    expect(searchParams.get('span')).toBe('24h')
    expect(await listAll(`actor=${email}&action=event.body_read`)).toHaveLength(1)
    await expectNoFault()
    await page.reload()
    await page.getByRole('region', { name: 'After', exact: true }).waitFor()

    await page.getByRole('combobox', { name: 'Who', exact: true }).fill('nobody@example.com')
    await page.keyboard.press('Enter')
    await page.getByText('No entry matches the filters').waitFor()
    expect(await listAll('actor=nobody@example.com')).toEqual([])
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await page.getByRole('row').nth(2).waitFor()
    expect(new URL(page.url()).search).toBe('')
  })

  it('is filtered by tenant and by instants', async () => {
    const { page } = story
    const path = '/audit?limit=500&action=tenant.rotated,erasure.done'
    const read = (more: string) => story.read<{ data: Entry[] }>(`${path}&${more}`)
    await until('the erasure is done', async () => (await read('')).data.length === 2)
    await page.getByLabel('Log', { exact: true }).selectOption(slug)
    await page.getByRole('row', { name: /tenant\.rotated/ }).waitFor()
    // Rows of the previous filter are gone by then.
    expect(await page.getByRole('row', { name: /operator\./ }).count()).toBe(0)
    const ofTenant = await read('')
    const first = ofTenant.data.find(({ action }) => action === 'tenant.rotated')
    const at = (first as unknown as { at: string }).at
    const earlier = `to=${encodeURIComponent(at)}`
    expect((await read(earlier)).data).toEqual([])
    const since = await read(`from=${encodeURIComponent(at)}`)
    expect(since.data.map(({ action }) => action)).toEqual(['erasure.done', 'tenant.rotated'])
    await page.goto(`/manage/audit?of=${slug}&from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z`)
    await page.getByText('No entry matches the filters').waitFor()
  })
})
