// The operators' view of alerts: the list, and one alert with all its details.
import { beforeAll, describe, expect, it } from 'vitest'
import { alertStreamsPerOperatorMax } from '#shared/core/base/limits/alerts.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import type { AlertDetail } from '../../../services/console/alerts/alert-schemas.ts'
import { testLog } from '../../support/http/console-rig.ts'
import {
  admin,
  createTenant,
  ingest,
  readAlerts,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** Tests on the stack of the file that calls this. */
export function describeAlertWork(getRunning: () => TestStack): void {
  let running: TestStack
  let tenant: Tenant

  const rooted = {
    root: { su_binary: true, magisk_detected: true },
    debugger: { frida_detected: true },
  }

  beforeAll(async () => {
    running = getRunning()
    tenant = await createTenant(running.stack, 'work')
    for (let n = 0; n < 12; n++) {
      const submission = {
        device: `d${n % 4}`,
        session: `s${n}`,
        user: `u${n % 3}`,
        signals: rooted,
      }
      const body = toBody(tenant.tenant_id, submission)
      expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
    }
    await until('twelve alerts', async () => {
      const { total } = await readAlerts(running.stack, tenant.public_api_key)
      return total === 12 ? true : null
    })
  })

  const call = <T>(method: string, path: string, body?: unknown) =>
    admin<T>(running.stack, method, path, body)

  type Row = { alert_id: string; event_id: string; assignee: string | null; notes: number }
  type Page = { data: Row[]; total: number; limit: number; next_cursor: string | null }
  const list = (query = '') => call<Page>('GET', `/tenants/work/alerts${query}`)

  describe('the list', () => {
    it('equals the list of the REST API, with assignee and notes, and pages by cursor', async () => {
      const { alerts } = await readAlerts(running.stack, tenant.public_api_key)
      const seen: Row[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: Page = await list(`?limit=5${cursor && `&cursor=${cursor}`}`)
        expect(page.total).toBe(12)
        seen.push(...page.data)
        cursor = page.next_cursor
      }
      const work = { assignee: null, notes: 0, case_id: expect.stringMatching(/^cas_/) }
      expect(seen).toEqual(alerts.map((alert) => ({ ...alert, ...work })))
    })

    it('accepts the same filters, and the assignee', async () => {
      const { data, total } = await list('?user_id=u1&severity=CRITICAL&min_score=75')
      expect([total, data.length]).toEqual([4, 4])
      const { alert_id: id } = data[0]!
      await call('PUT', `/alerts/${id}/assignee`, { assignee: 'ann@example.com' })
      const mine = await list('?assignee=ann@example.com')
      expect(mine).toMatchObject({
        total: 1,
        data: [{ alert_id: id, assignee: 'ann@example.com' }],
      })
      expect((await list('?assignee=none')).total).toBe(11)
      expect((await list('?assignee=none&user_id=u1')).total).toBe(3)
      await call('PUT', `/alerts/${id}/assignee`, { assignee: null })
      expect((await list('?assignee=none')).total).toBe(12)
      const { next_cursor: cursor } = await list('?assignee=none&limit=5')
      expect((await list(`?assignee=none&limit=5&cursor=${cursor}`)).data).toHaveLength(5)
      await expect(list(`?limit=5&cursor=${cursor}`)).rejects.toThrow(/not one of this list/)
      await expect(list('?assigned=x')).rejects.toThrow(/assigned/)
    })

    it('has as many alerts as the counts by flag and SDK version say', async () => {
      const count = async (query: string) => {
        const path = `/tenants/work/alerts/counts?${query}`
        return (await call<{ data: { value: string; alerts: number }[] }>('GET', path)).data
      }
      const flags = await count('by=flag&flag=EMULATOR&user_id=u1')
      expect(flags.map(({ value }) => value)).toContain('ROOTED')
      for (const { value, alerts } of flags) {
        expect((await list(`?user_id=u1&flag=${value}`)).total, value).toBe(alerts)
      }
      expect(await count('by=sdk_version&user_id=u1')).toEqual([{ value: '4.2.0', alerts: 4 }])
      expect((await list('?sdk_version=4.2.0&user_id=u1')).total).toBe(4)
      expect((await list('?sdk_version=4.3.0')).total).toBe(0)
      await expect(count('by=country')).rejects.toThrow(/400/)
      await expect(count('by=flag&limit=5')).rejects.toThrow(/400/)
    })
  })

  describe('text that no store can hold, or an invalid id', () => {
    const send = async (method: string, path: string, body?: object) => {
      const { console: address, admin_token: token } = running.stack
      const answer = await fetch(`${address}/admin/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return answer.status
    }

    it('is rejected as an assignee, as is everything but an email', async () => {
      const id = (await list('?limit=1')).data[0]!.alert_id
      for (const assignee of ['a\0b@c.d', 'a\ud800b@c.d', 'a\0b', 'a\ud800b', 'none', 'some one']) {
        expect(await send('PUT', `/alerts/${id}/assignee`, { assignee }), assignee).toBe(400)
      }
      for (const assignee of ['a%00b', 'a%00b@c.d', 'some%20one']) {
        for (const path of ['alerts', 'alerts.csv']) {
          expect(await send('GET', `/tenants/work/${path}?assignee=${assignee}`), path).toBe(400)
        }
      }
      await call('PUT', `/alerts/${id}/assignee`, { assignee: ' Ann@Example.com ' })
      expect((await list('?assignee=ANN@example.com')).data).toMatchObject([
        { alert_id: id, assignee: 'ann@example.com' },
      ])
      await call('PUT', `/alerts/${id}/assignee`, { assignee: null })
    })

    it('is rejected in the filter of a bulk change and in an erasure', async () => {
      const filters = [
        { assignee: 'a\0b' },
        ...['device_id', 'user_id', 'session_id'].flatMap((key) => [
          { [key]: 'a\0b' },
          { [key]: 'a\ud800b' },
        ]),
      ]
      for (const filter of filters) {
        const body = { filter, disposition: 'OPEN', expected_count: 0 }
        const status = await send('POST', '/tenants/work/alerts/bulk-disposition', body)
        expect(status, JSON.stringify(filter)).toBe(400)
      }
      for (const body of [{ device_id: 'a\ud800b' }, { user_id: 'a\ud800b' }]) {
        expect(await send('POST', '/tenants/work/erasures', body)).toBe(400)
      }
    })

    it('is rejected as the id of a job', async () => {
      for (const id of ['a%00b', 'a%20b', 'x'.repeat(65)]) {
        expect(await send('GET', `/bulk-jobs/${id}`), id).toBe(400)
        expect(await send('POST', `/bulk-jobs/${id}/cancel`, {}), id).toBe(400)
        expect(await send('POST', `/bulk-jobs/${id}/undo`, {}), id).toBe(400)
      }
    })

    it('is rejected as the id of an erasure', async () => {
      for (const id of ['a%00b', 'a%20b', 'x'.repeat(65)]) {
        expect(await send('GET', `/tenants/work/erasures/${id}`), id).toBe(400)
        expect(await send('GET', `/tenants/work/erasures?cursor=${id}`), id).toBe(400)
      }
    })
  })

  describe('an alert', () => {
    it('has notes, history, delivery, explanation, and its score by current policies', async () => {
      const [row] = (await list('?limit=1')).data
      const id = row!.alert_id
      await call('POST', `/alerts/${id}/notes`, { note: 'called the customer' })
      await call('POST', `/alerts/${id}/disposition`, { disposition: 'CONFIRMED', note: 'fraud' })
      await call('PUT', '/tenants/work/policy/shadow', { preset: 'permissive' })
      const detail = await until('an explanation', async () => {
        const found = await call<AlertDetail>('GET', `/alerts/${id}`)
        return found.explanation === null ? null : found
      })
      expect(detail.alert).toMatchObject({ alert_id: id, disposition: 'CONFIRMED', notes: 1 })
      expect(detail.notes).toMatchObject([{ author: 'admin', note: 'called the customer' }])
      expect(detail.history).toMatchObject([
        { actor: 'admin', from: 'OPEN', to: 'CONFIRMED', note: 'fraud' },
      ])
      expect(detail.deliveries).toMatchObject([{ alert_id: id }])
      expect(detail.unexplained).toBeNull()
      const { explanation, now } = detail
      expect(explanation).toMatchObject({ matches: true, event: { event_id: row!.event_id } })
      const raised = explanation!.alerts.find((one) => one.alert_id === id)
      expect(raised).toMatchObject({ raised_by_this_event: true })
      // The policy is the one that raised it, so it gives the same result now.
      expect(now.active).toMatchObject({
        version: detail.policy_version,
        action: detail.alert.decision.action,
        risk_score: detail.alert.decision.risk_score,
        risk_features: true,
      })
      expect(now.shadow!.name).not.toBe(now.active!.name)
      expect(now.shadow!.rasp_score).toBeLessThanOrEqual(now.active!.rasp_score)
    })

    it('shows the body of its event, byte for byte, on request', async () => {
      const [row] = (await list('?limit=1')).data
      const shown = await call<{ body: string; intact: boolean }>(
        'GET',
        `/events/${row!.event_id}/body`,
      )
      expect(shown.intact).toBe(true)
      expect(JSON.parse(shown.body)).toMatchObject({ tenant_id: 'work', signals: rooted })
    })

    it('is not overwritten after another change, unless no expectation is sent', async () => {
      const { data } = await list('?limit=2')
      const id = data[1]!.alert_id
      const refused = async (method: string, path: string, body: object) => {
        const { console: address, admin_token: token } = running.stack
        const answer = await fetch(`${address}/admin/v1/alerts/${id}${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
      }
      await call('POST', `/alerts/${id}/disposition`, { disposition: 'REVIEWED' })
      const seen = { disposition: 'FALSE_POSITIVE', expected_disposition: 'OPEN' }
      expect(await refused('POST', '/disposition', seen)).toMatchObject({
        status: 409,
        body: {
          code: 'alert_changed',
          detail: 'admin set it to REVIEWED meanwhile.',
          present: { disposition: 'REVIEWED', assignee: null },
        },
      })
      // Setting an existing value is no conflict.
      const already = { disposition: 'REVIEWED', expected_disposition: 'OPEN' }
      expect((await refused('POST', '/disposition', already)).status).toBe(200)
      await call('PUT', `/alerts/${id}/assignee`, { assignee: 'ann@example.com' })
      const assign = { assignee: 'bob@example.com', expected_assignee: null }
      expect(await refused('PUT', '/assignee', assign)).toMatchObject({
        status: 409,
        body: { code: 'alert_changed', present: { assignee: 'ann@example.com' } },
      })
      const { alert, history } = await call<AlertDetail>('GET', `/alerts/${id}`)
      expect(alert).toMatchObject({ disposition: 'REVIEWED', assignee: 'ann@example.com' })
      expect(history).toHaveLength(1)
      await call('PUT', `/alerts/${id}/assignee`, {
        assignee: null,
        expected_assignee: 'ann@example.com',
      })
      await call('POST', `/alerts/${id}/disposition`, { disposition: 'OPEN' })
      expect((await call<AlertDetail>('GET', `/alerts/${id}`)).alert).toMatchObject({
        disposition: 'OPEN',
        assignee: null,
      })
    })

    it('that does not exist is a 404', async () => {
      await expect(call('GET', '/alerts/alr_none')).rejects.toThrow(/alert_not_found/)
    })
  })

  describe('a bulk change', () => {
    type Job = { job_id: string; state: string; total: number; done: number; changed: number }
    const begin = (body: object) => call<Job>('POST', '/tenants/work/alerts/bulk-disposition', body)
    const ended = (id: string) =>
      until('the end of the job', async () => {
        const job = await call<Job>('GET', `/bulk-jobs/${id}`)
        return job.state === 'running' ? null : job
      })

    it('is counted without a connection in hand, however many begin at once', async () => {
      const body = { filter: { min_score: '1' }, disposition: 'OPEN', expected_count: 999 }
      const path = '/admin/v1/tenants/work/alerts/bulk-disposition'
      const begin = async (n: number) => {
        const answer = await fetch(`${running.stack.console}${path}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${running.stack.admin_token}`,
            'content-type': 'application/json',
            'idempotency-key': `at-once-${n}`,
          },
          body: JSON.stringify(body),
        })
        return answer.status
      }
      // More than the console has connections.
      const statuses = await Promise.all(Array.from({ length: 15 }, (_, n) => begin(n)))
      expect(new Set(statuses)).toEqual(new Set([409]))
    })

    it('begins only when the expected number matches exactly', async () => {
      const body = {
        filter: { disposition: 'OPEN' },
        disposition: 'REVIEWED',
        expected_count: 5_000,
      }
      await expect(begin(body)).rejects.toThrow(/match now/)
      expect((await list('?disposition=REVIEWED')).total).toBe(0)
    })

    it('changes exactly the matches, each recorded and audited under its author', async () => {
      const filter = { user_id: 'u1', disposition: 'OPEN' }
      const { total } = await list('?user_id=u1&disposition=OPEN')
      expect(total).toBeGreaterThan(2)
      const change = { filter, disposition: 'FALSE_POSITIVE', note: 'test phones' }
      const job = await begin({ ...change, expected_count: total })
      expect(job).toMatchObject({ state: 'running', total, done: 0 })
      expect(await ended(job.job_id)).toMatchObject({ state: 'done', done: total, changed: total })
      expect((await list('?disposition=FALSE_POSITIVE')).total).toBe(total)
      expect((await list('?disposition=FALSE_POSITIVE&user_id=u1')).total).toBe(total)
      const { data } = await list('?disposition=FALSE_POSITIVE&limit=1')
      const detail = await call<AlertDetail>('GET', `/alerts/${data[0]!.alert_id}`)
      expect(detail.history.at(-1)).toMatchObject({ actor: 'admin', note: 'test phones' })
      type Audit = { data: { action: string; after: { job_id?: string } }[] }
      const audit = await call<Audit>('GET', '/tenants/work/audit?limit=500')
      const entries = audit.data.filter(({ after }) => after?.job_id === job.job_id)
      expect(entries.filter((one) => one.action === 'alert.dispositioned')).toHaveLength(total)
    })

    it('that was cancelled makes no further changes', async () => {
      const { total } = await list()
      const job = await begin({ filter: {}, disposition: 'OPEN', expected_count: total })
      const cancelled = await call<Job>('POST', `/bulk-jobs/${job.job_id}/cancel`, {})
      expect(['cancelled', 'done']).toContain(cancelled.state)
      expect(await ended(job.job_id)).toEqual(cancelled)
      await expect(call('GET', '/bulk-jobs/blk_none')).rejects.toThrow(/bulk_job_not_found/)
    })

    it('assigns a selection, is listed, and is undone once', async () => {
      const { data } = await list('?limit=3')
      const ids = data.map((row) => row.alert_id)
      const assign = (body: object) => call<Job>('POST', '/tenants/work/alerts/bulk-assign', body)
      const to = { assignee: 'ann@example.com', expected_count: 3 }
      for (const body of [{ ...to, filter: {}, alert_ids: ids }, to, { ...to, alert_ids: [] }]) {
        await expect(assign(body)).rejects.toThrow(/invalid_body/)
      }
      await expect(assign({ ...to, alert_ids: ids.slice(1) })).rejects.toThrow(/2 alerts match now/)
      const job = await assign({ ...to, alert_ids: ids })
      expect(await ended(job.job_id)).toMatchObject({ state: 'done', changed: 3 })
      const mine = await list('?assignee=ann@example.com')
      expect(mine.data.map((row) => row.alert_id)).toEqual(ids)
      const undo = await call<Job>('POST', `/bulk-jobs/${job.job_id}/undo`, {})
      await expect(call('POST', `/bulk-jobs/${job.job_id}/undo`, {})).rejects.toThrow(
        /undone already/,
      )
      expect(await ended(undo.job_id)).toMatchObject({ changed: 3, kept: 0, undo_of: job.job_id })
      expect((await list('?assignee=none')).total).toBe((await list()).total)
      const jobs = await call<{ data: Job[] }>('GET', '/tenants/work/bulk-jobs?limit=2')
      expect(jobs.data).toMatchObject([
        { job_id: undo.job_id },
        { job_id: job.job_id, undone_by: undo.job_id },
      ])
      await expect(call('POST', '/bulk-jobs/blk_none/undo', {})).rejects.toThrow(
        /bulk_job_not_found/,
      )
    })
  })

  describe('the CSV', () => {
    it('is not read by HEAD', async () => {
      const { stack } = running
      const answer = await fetch(`${stack.console}/admin/v1/tenants/work/alerts.csv`, {
        method: 'HEAD',
        headers: { authorization: `Bearer ${stack.admin_token}` },
      })
      expect(answer.status).toBe(405)
    })

    it('has every alert of the filter, with the header', async () => {
      const { stack } = running
      const answer = await fetch(`${stack.console}/admin/v1/tenants/work/alerts.csv?user_id=u2`, {
        headers: { authorization: `Bearer ${stack.admin_token}` },
      })
      expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
      const lines = (await answer.text()).trimEnd().split('\r\n')
      const { data } = await list('?user_id=u2')
      expect(lines[0]).toMatch(/^"alert_id","created_at","action"/)
      expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(
        data.map((row) => `"${row.alert_id}"`),
      )
    })
  })

  describe('the CSV for Excel', () => {
    it('has a byte order mark and the same rows', async () => {
      const { stack } = running
      const read = async (form: string) => {
        const path = `/admin/v1/tenants/work/alerts.csv?user_id=u2&form=${form}`
        const headers = { authorization: `Bearer ${stack.admin_token}` }
        const answer = await fetch(`${stack.console}${path}`, { headers })
        expect(answer.status).toBe(200)
        return Buffer.from(await answer.arrayBuffer()).toString()
      }
      expect(await read('excel')).toBe(`\ufeff${await read('plain')}`)
    })
  })

  describe('a device and a user', () => {
    it('show their history and their alerts', async () => {
      type Page = {
        device: { sessions: object[]; sessions_total: number; users_seen_on: string[] }
        alerts: { total: number; data: Row[] }
      }
      const page = await call<Page>('GET', '/tenants/work/devices/d0')
      expect(page.device).toMatchObject({ sessions_total: 3, users_seen_on: ['u0', 'u1', 'u2'] })
      expect(page.alerts.total).toBe((await list('?device_id=d0')).total)
      await expect(call('GET', '/tenants/work/devices/nothing')).rejects.toThrow(/device_not_found/)
    })

    it('show a device whose events have expired as its alerts do', async () => {
      const [row] = (await list('?device_id=d0&limit=1')).data
      const postgres = createPostgres(running.stack.postgres, { role: 'test', log: testLog })
      const rename = (deviceId: string) =>
        postgres.query('update alerts set device_id = $1 where alert_id = $2', [
          deviceId,
          row!.alert_id,
        ])
      await rename('expired')
      type Page = { device: { sessions_total: number }; alerts: { total: number } }
      const page = await call<Page>('GET', '/tenants/work/devices/expired')
      expect([page.device.sessions_total, page.alerts.total]).toEqual([1, 1])
      await rename('d0')
      await postgres.close()
    })

    it('and a user also has devices and sessions with scores', async () => {
      type Page = {
        user: { devices_total: number; peak_rasp_score: number }
        sessions: { session_id: string; rasp_score: number; started_at: string }[]
        alerts: { total: number }
      }
      const page = await call<Page>('GET', '/tenants/work/users/u1')
      expect(page.user).toMatchObject({ devices_total: 4, peak_rasp_score: 100 })
      expect(page.sessions.map((one) => one.session_id).sort()).toEqual(['s1', 's10', 's4', 's7'])
      const starts = page.sessions.map((one) => one.started_at)
      expect(starts).toEqual([...starts].sort().reverse())
      expect(page.alerts.total).toBe(4)
      await expect(call('GET', '/tenants/work/users/unknown-user')).rejects.toThrow(
        /user_not_found/,
      )
    })
  })

  describe('the search', () => {
    type Found = { data: { kind: string; id: string; tenant_id: string }[]; partial: boolean }
    const search = (q: string) => call<Found>('GET', `/search?q=${encodeURIComponent(q)}`)

    it('finds alerts, deliveries, events, devices, users, sessions and tenants by id', async () => {
      const [row] = (await list('?limit=1')).data
      const { deliveries } = await call<AlertDetail>('GET', `/alerts/${row!.alert_id}`)
      const all: [string, string, string][] = [
        [row!.alert_id, 'alert', row!.alert_id],
        [row!.alert_id.slice(0, 12), 'alert', row!.alert_id],
        [deliveries[0]!.delivery_id, 'delivery', deliveries[0]!.delivery_id],
        [row!.event_id, 'event', row!.event_id],
        ['d0', 'device', 'd0'],
        ['u', 'user', 'u1'],
        ['s11', 'session', 's11'],
        ['wor', 'tenant', 'work'],
      ]
      for (const [q, kind, id] of all) {
        const { data, partial } = await search(q)
        expect(partial, q).toBe(false)
        expect(data, q).toContainEqual({ kind, id, tenant_id: 'work' })
      }
      expect((await search("nothing' or 1=1")).data).toEqual([])
    })
  })

  describe('the stream', () => {
    it('announces new alerts within a second and resumes after the last event', async () => {
      const { stack } = running
      const open = async (headers: Record<string, string> = {}) => {
        const abort = new AbortController()
        const answer = await fetch(`${stack.console}/admin/v1/tenants/work/alerts/stream`, {
          headers: { authorization: `Bearer ${stack.admin_token}`, ...headers },
          signal: abort.signal,
        })
        expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
        const readUntil = async (change: RegExp): Promise<string> => {
          for (let text = ''; ; ) {
            const { value, done } = await reader.read()
            if (done) throw new Error(`the stream ended: ${text}`)
            text += value
            const found = change.exec(text)
            if (found !== null) return found[1]!
          }
        }
        return { readUntil, close: () => abort.abort() }
      }
      const first = await open()
      const lastId = await first.readUntil(/id: (\d+)\nevent: ready/)
      const before = (await list()).total
      const body = toBody('work', { device: 'fresh', session: 'fresh', signals: rooted })
      expect((await ingest(stack, tenant.hmac_secret, body)).status).toBe(200)
      await until('the alert', async () => ((await list()).total > before ? true : null))
      const raisedMs = performance.now()
      expect(await first.readUntil(/event: alerts\ndata: (.*)\n/)).toMatch(/"new":1/)
      // Its next look without a hint comes much later.
      expect(performance.now() - raisedMs).toBeLessThan(10_000)
      first.close()
      const again = await open({ 'last-event-id': lastId })
      expect(await again.readUntil(/event: alerts\ndata: (.*)\n/)).toMatch(/"new":1/)
      again.close()
    })

    const openStream = (method: string, signal: AbortSignal) => {
      const { stack } = running
      return fetch(`${stack.console}/admin/v1/tenants/work/alerts/stream`, {
        method,
        headers: { authorization: `Bearer ${stack.admin_token}` },
        signal,
      })
    }
    const allAreFree = () =>
      until('as many free streams as there are', async () => {
        const abort = new AbortController()
        const opened = await Promise.all(
          Array.from({ length: alertStreamsPerOperatorMax }, () => openStream('GET', abort.signal)),
        )
        abort.abort()
        return opened.every(({ status }) => status === 200) ? true : null
      })

    it('is rejected beyond the limit of one operator, also when opened at once', async () => {
      await allAreFree()
      const counts: number[] = []
      // Streams that were just closed still count for a moment.
      await until('exactly as many streams as there may be', async () => {
        const abort = new AbortController()
        const opened = await Promise.all(
          Array.from({ length: 60 }, () => openStream('GET', abort.signal)),
        )
        abort.abort()
        const open = opened.filter(({ status }) => status === 200).length
        counts.push(open)
        return open >= alertStreamsPerOperatorMax ? true : null
      })
      expect(Math.max(...counts)).toBe(alertStreamsPerOperatorMax)
      await allAreFree()
    })

    it('is not kept open by HEAD, nor by a client that has left', async () => {
      for (let n = 0; n <= alertStreamsPerOperatorMax; n++) {
        expect((await openStream('HEAD', AbortSignal.timeout(5_000))).status).toBe(405)
      }
      for (let n = 0; n < 60; n++) {
        const abort = new AbortController()
        const left = openStream('GET', abort.signal).catch(() => null)
        await new Promise((resolve) => setTimeout(resolve, n / 10))
        abort.abort()
        await left
      }
      await allAreFree()
    })
  })

  describe('the overview', () => {
    it('counts a period and the previous one, and agrees with its lists', async () => {
      const startMs = Date.now()
      type Pair = { now: number; before: number }
      type Overview = {
        telemetry: {
          events: Pair
          devices: Pair
          actions: Record<string, Pair>
          top_flags: { flag: string; events: Pair }[]
          sdk_versions: { sdk_version: string; platform: string; events: Pair; devices: Pair }[]
        }
        alerts: { raised: Pair; BLOCK: Pair; open: number; line: { now: number[] } }
        webhook: { state: string; deliveries: { state: string; count: Pair }[] }
        reconciliation: { agrees: boolean } | null
      }
      const { telemetry, alerts, webhook, reconciliation } = await until(
        'all thirteen events',
        async () => {
          const found = await call<Overview>('GET', '/tenants/work/overview')
          return found.telemetry?.events.now === 13 ? found : null
        },
      )
      expect(telemetry.events).toEqual({ now: 13, before: 0 })
      expect(telemetry.devices).toEqual({ now: 5, before: 0 })
      expect(telemetry.actions.BLOCK).toEqual({ now: 13, before: 0 })
      expect(telemetry.top_flags.map((one) => one.flag)).toContain('ROOTED')
      expect(telemetry.sdk_versions).toEqual([
        {
          platform: 'android',
          sdk_version: '4.2.0',
          events: { now: 13, before: 0 },
          devices: { now: 5, before: 0 },
        },
      ])
      expect(alerts.raised.now).toBe((await list()).total)
      expect(alerts.line.now.reduce((sum, one) => sum + one, 0)).toBe(alerts.raised.now)
      expect(alerts.open).toBe((await list('?disposition=OPEN')).total)
      expect(webhook.state).toBe('off')
      expect(webhook.deliveries.reduce((sum, one) => sum + one.count.now, 0)).toBe(
        alerts.raised.now,
      )
      expect(reconciliation?.agrees).toBe(true)
      const past = `from=${new Date(startMs).toISOString()}&to=${new Date(startMs + 60_000).toISOString()}`
      const later = await call<Overview>('GET', `/tenants/work/overview?${past}`)
      expect(later.telemetry.events.now).toBe(0)
      expect(later.telemetry.events.before).toBeLessThanOrEqual(13)
      await expect(
        call('GET', '/tenants/work/overview?from=2026-01-01&to=2026-12-01'),
      ).rejects.toThrow(/from/)
    })
  })
}
