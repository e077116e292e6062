// The queue of cases over HTTP, on a whole stack; cases.test.ts has what the store guarantees.
import { beforeAll, describe, expect, it } from 'vitest'
import {
  admin,
  createTenant,
  ingest,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** Tests on the stack of the file that calls this. */
export function describeCases(getRunning: () => TestStack): void {
  const slug = 'settled'
  let tenant: Tenant

  type Case = {
    case_id: string
    subject: { kind: string; id: string }
    state: string
    alerts: number
    open_alerts: number
    version: number
  }
  type Page = { data: Case[]; next_cursor: string | null }
  const call = <T>(method: string, path: string, body?: unknown) =>
    admin<T>(getRunning().stack, method, path, body)
  const list = (query = '') => call<Page>('GET', `/tenants/${slug}/cases${query}`)
  const fetchAdmin = (path: string, init: RequestInit = {}) => {
    const { stack } = getRunning()
    const headers = {
      authorization: `Bearer ${stack.admin_token}`,
      'content-type': 'application/json',
      ...init.headers,
    }
    return fetch(`${stack.console}/admin/v1${path}`, { ...init, headers })
  }
  const raise = async (device: string, session: string) => {
    const signals = { root: { su_binary: true }, debugger: { frida_detected: true } }
    const body = toBody(slug, { device, session, user: 'u1', signals })
    return (await ingest(getRunning().stack, tenant.hmac_secret, body)).status
  }

  beforeAll(async () => {
    tenant = await createTenant(getRunning().stack, slug)
    const rules = { group_by: 'device', reopen_days: 7, block_due_hours: 1, review_due_hours: 2 }
    expect(await call('PUT', `/tenants/${slug}/case-rules`, rules)).toEqual(rules)
    for (let n = 0; n < 9; n++) expect(await raise(`d${n % 3}`, `s${n}`)).toBe(200)
    await until('nine alerts', async () => {
      const { data } = await list()
      return data.reduce((sum, { alerts }) => sum + alerts, 0) === 9 ? true : null
    })
  })

  describe('the queue', () => {
    it.each(['due', 'risk', 'latest'])('pages by %s without a gap, with filters', async (sort) => {
      const seen: string[] = []
      for (let cursor = ''; ; ) {
        const page = await list(`?sort=${sort}&state=OPEN&limit=1${cursor}`)
        seen.push(...page.data.map(({ subject }) => subject.id))
        if (page.next_cursor === null) break
        cursor = `&cursor=${page.next_cursor}`
      }
      expect(seen.sort()).toEqual(['d0', 'd1', 'd2'])
    })

    it('counts by state, and filters as it says', async () => {
      const counts = (query = '') => call('GET', `/tenants/${slug}/cases/counts${query}`)
      expect(await counts()).toEqual({ open: 3, snoozed: 0, closed: 0, breached: 0 })
      expect(await counts('?q=D1&state=CLOSED')).toMatchObject({ open: 1 })
      for (const [query, rows] of [
        ['?q=D1', 1],
        ['?action=BLOCK&subject_kind=device&min_risk=1&breached=false&assignee=none', 3],
        ['?flag=HOOKING_DETECTED', 3],
        ['?flag=EMULATOR,VPN_SUSPECTED', 0],
        ['?assignee=me', 0],
        ['?state=CLOSED,SNOOZED', 0],
      ] as const) {
        const answer = await fetchAdmin(`/tenants/${slug}/cases${query}`)
        const text = await answer.text()
        expect(answer.status, `${query} ${text}`).toBe(200)
        expect((JSON.parse(text) as Page).data.length, query).toBe(rows)
      }
    })
  })

  it('are found by the beginning of an id, and by whom their alerts are about', async () => {
    type Found = { data: { kind: string; id: string; tenant_id: string }[] }
    const search = async (text: string) => {
      const { data } = await call<Found>('GET', `/search?q=${text}&tenant_id=${slug}`)
      return data.filter(({ kind }) => kind === 'case').map(({ id }) => id)
    }
    const { data } = await list('?q=d1')
    const caseId = data[0]!.case_id
    expect(await search(caseId.slice(0, 12))).toEqual([caseId])
    expect(await search('d1')).toEqual([caseId])
    expect((await search('u1')).length).toBe(3)
    expect((await search('cas_')).length).toBe(3)
    expect(await search('d')).toEqual([])
    const other = await call<Found>('GET', `/search?q=${caseId}&tenant_id=another`)
    expect(other.data).toEqual([])
  })

  describe('a case', () => {
    it('is taken, judged once for an idempotency key, and told to streams', async () => {
      const abort = new AbortController()
      const stream = await fetchAdmin(`/tenants/${slug}/alerts/stream`, { signal: abort.signal })
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
      await reader.read()
      const { case: taken } = await call<{ case: Case }>('POST', `/tenants/${slug}/cases/next`, {})
      const { case_id: caseId, version } = taken
      const here = await call('PUT', `/cases/${caseId}/presence`)
      expect(here).toMatchObject({ here: [{ operator: 'admin' }] })
      const judge = (key: string, body: object) =>
        fetchAdmin(`/cases/${caseId}/judgement`, {
          method: 'POST',
          headers: { 'idempotency-key': key },
          body: JSON.stringify(body),
        })
      const stale = await judge('stale', {
        disposition: 'CONFIRMED',
        expected_version: version + 1,
      })
      expect(stale.status).toBe(409)
      expect(await stale.json()).toMatchObject({
        code: 'case_changed',
        present_case: { version, open_alerts: 3 },
      })
      const list = { list: 'deny', reason: 'fraud', expires_at: '2100-01-01T00:00:00Z' }
      const body = { disposition: 'CONFIRMED', expected_version: version, list }
      const answers = []
      for (let n = 0; n < 2; n++) answers.push(await (await judge('twice', body)).json())
      expect(answers[0]).toMatchObject({ judged: 3, case: { case_id: caseId, state: 'CLOSED' } })
      expect(answers[1]).toEqual(answers[0])
      for (let told = ''; !told.includes('event: cases'); ) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream ended: ${told}`)
        told += value
        if (told.includes('event: cases')) {
          expect(told).toContain(`{"case_id":"${caseId}","state":"CLOSED"}`)
        }
      }
      abort.abort()
      const alerts = await call<{ total: number }>(
        'GET',
        `/tenants/${slug}/alerts?case_id=${caseId}&disposition=CONFIRMED`,
      )
      expect(alerts.total).toBe(3)
      const shown = await call('GET', `/cases/${caseId}`)
      expect(shown).toMatchObject({
        case: { judged_by: 'admin', leased_by: null },
        history: [{ kind: 'judged', details: { disposition: 'CONFIRMED', alerts: 3 } }],
      })
    })
  })

  it('keeps saved views, which are replaced by name and removed', async () => {
    const view = { kind: 'cases', name: 'Worst first', query: { sort: 'risk' }, shared: true }
    type View = { view_id: string; query: object }
    const first = await call<View>('POST', `/tenants/${slug}/saved-views`, view)
    const query = { sort: 'risk', state: 'OPEN' }
    await call('POST', `/tenants/${slug}/saved-views`, { ...view, query })
    const saved = () => call<{ data: View[] }>('GET', `/tenants/${slug}/saved-views?kind=cases`)
    const { view_id: viewId } = first
    expect((await saved()).data).toMatchObject([{ view_id: viewId, query, own: true }])
    await call('DELETE', `/tenants/${slug}/saved-views/${viewId}`)
    expect((await saved()).data).toEqual([])
  })
}
