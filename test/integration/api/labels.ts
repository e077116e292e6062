// Labels over HTTP, for the api of `reading.test.ts`: what is taken, kept, refused and listed.
import { expect, test } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { labelSchema } from '#shared/core/outcomes/label-schemas.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'
import { declareLabelCode, removeLabelCode } from '#shared/io/outcomes/change-label-codes.ts'
import type { ApiRig } from '../../support/http/api-rig.ts'

type Rigged = { rig: () => ApiRig; key: () => string; otherKey: () => string }
type Labelled = { label_id: string; external_id: string | null }

/** @param writer makes a key with the scope; of the tenant `acme`, as `key` is */
export function describeLabels(
  { rig, key, otherKey }: Rigged,
  newWriter: (name: string) => Promise<string>,
): void {
  const add = (body: unknown, of: string, headers: Record<string, string> = {}) =>
    rig().call('/v1/di/labels', { key: of, method: 'POST', body, headers })
  const list = async (query: string, of = key()) => {
    const answer = await rig().call(`/v1/di/labels?${query}`, { key: of })
    expect(answer.status, answer.text).toBe(200)
    return answer.json<{ data: Labelled[]; next_cursor: string | null }>()
  }
  const declare = (code: string, means: Outcome) =>
    declareLabelCode(rig().postgres, { tenantId: 'acme', actor: 'admin', code, means })
  const ofDevice = (device_id: string, more = {}) => ({
    subject: { device_id },
    label: 'chargeback',
    ...more,
  })

  test('are stored with who and when, of subjects that nobody knows, and only for their tenant', async () => {
    const writer = await newWriter('label-tool')
    const body = ofDevice('never-seen', {
      occurred_at: '2026-03-01',
      covered_days: 7,
      amount: '129.9',
      currency: 'EUR',
      external_id: 'cb-1',
      note: 'a\nb',
    })
    const answer = await add(body, writer)
    expect(answer.status, answer.text).toBe(201)
    const [added] = answer.json<{ data: Labelled[] }>().data
    expect(added).toEqual({
      label_id: expect.stringMatching(/^lbl_[\w-]{22}$/),
      outcome: 'fraud',
      // A date counts to its end.
      occurred_at: '2026-03-01T23:59:59.999Z',
      covered_days: 7,
    })
    const [listed] = (await list('device_id=never-seen')).data
    expect(labelSchema.strict().parse(listed)).toMatchObject({
      ...added,
      subject: { device_id: 'never-seen' },
      label: 'chargeback',
      is_latest: true,
      amount: '129.90',
      currency: 'EUR',
      external_id: 'cb-1',
      note: 'a\nb',
      actor: { kind: 'api_key', id: 'label-tool' },
    })
    expect((await list('device_id=never-seen', otherKey())).data).toEqual([])
    const { rows } = await rig().postgres.query(
      "select actor, after from audit_log where action = 'labels.added' order by audit_id desc limit 1",
    )
    const after = { labels: 1, by_label: { chargeback: 1 }, label_ids: [added!.label_id] }
    expect(rows).toEqual([{ actor: 'api-key:label-tool', after }])
  })

  test('have codes that were declared, with a meaning that stays', async () => {
    const writer = await newWriter('declared')
    const undeclared = await add({ ...ofDevice('declared'), label: 'vip_customer' }, writer)
    expect(undeclared.json()).toMatchObject({
      code: 'invalid_body',
      errors: [{ path: '$.label', message: expect.stringContaining('nearest') }],
    })
    await declare('vip_customer', 'fraud')
    await declare('vip_customer', 'legitimate')
    const labelled = await add({ ...ofDevice('declared'), label: 'vip_customer' }, writer)
    expect(labelled.json<{ data: object[] }>().data).toMatchObject([{ outcome: 'legitimate' }])
    await expect(declare('vip_customer', 'fraud')).rejects.toMatchObject({ code: 'conflict' })
    const codes = async (of: string) => {
      const answer = await rig().call('/v1/di/labels/codes', { key: of })
      const { data } = answer.json<{ data: { code: string; is_declared: boolean }[] }>()
      return data.filter(({ is_declared }) => is_declared).map(({ code }) => code)
    }
    expect(await codes(key())).toContain('vip_customer')
    expect(await codes(otherKey())).toEqual([])
    const removed = { tenantId: 'acme', actor: 'admin', code: 'vip_customer' }
    await removeLabelCode(rig().postgres, removed)
    expect(await codes(key())).not.toContain('vip_customer')
    expect((await list('label=vip_customer')).data).toMatchObject([{ outcome: 'legitimate' }])
  })

  test('in bytes that are no text, or with a member twice, are refused', async () => {
    const writer = await newWriter('bytes')
    const latin = Buffer.from('{"subject":{"user_id":"M\xfcller"},"label":"fraud"}', 'latin1')
    expect((await add(latin, writer)).json()).toMatchObject({
      errors: [{ path: '$', message: 'is not valid UTF-8 at byte 24, counted from 0' }],
    })
    const twice = Buffer.from('{"subject":{"user_id":"u"},"label":"legitimate","label":"fraud"}')
    expect((await add(twice, writer)).json()).toMatchObject({
      errors: [{ path: '$.label', message: 'is given more than once' }],
    })
  })

  test('need the scope labels:write', async () => {
    const answer = await add(ofDevice('d'), key())
    expect([answer.status, answer.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'scope_missing' }),
    ])
  })

  test('of one subject and external id supersede each other, in the order of a list', async () => {
    const writer = await newWriter('supersedes')
    const own = (label: string, more = {}) => ({ ...ofDevice('superseded', more), label })
    await add(own('fraud'), writer)
    await declare('mule', 'fraud')
    await declare('trusted', 'legitimate')
    const trusted = own('trusted', { external_id: 'y' })
    const mule = own('mule', { external_id: 'x' })
    await add([own('legitimate'), own('retracted'), mule, trusted], writer)
    const { data } = await list('device_id=superseded')
    const latest = data.filter((one) => (one as unknown as { is_latest: boolean }).is_latest)
    expect(latest).toHaveLength(3)
    expect(latest).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ label: 'retracted', outcome: null, external_id: null }),
        expect.objectContaining({ label: 'mule', outcome: 'fraud', external_id: 'x' }),
        expect.objectContaining({ label: 'trusted', outcome: 'legitimate', external_id: 'y' }),
      ]),
    )
  })

  test('are all refused when one is not valid, with the place and the field of each fault', async () => {
    const writer = await newWriter('refused')
    const ahead = new Date(Date.now() + 3 * dayMs).toISOString()
    const faults: [path: string, label: object][] = [
      ['.subject', { subject: {} }],
      ['.subject', { subject: { device_id: 'd', user_id: 'u' } }],
      ['.subject.device_id', { subject: { device_id: 'unknown' } }],
      ['.subject.user_id', { subject: { user_id: '00000000-0000-0000-0000-000000000000' } }],
      ['.subject.event_id', { subject: { event_id: 'alr_of-another-tenant' } }],
      ['.subject.alert_id', { subject: { alert_id: 'alr_1', device_id: 'd' } }],
      ['.label', { label: 'Chargeback' }],
      ['.label', { label: 'chargebacks' }],
      ['.label', { label: 'legitimat' }],
      ['.label', { label: 'legit' }],
      ['.label', { label: 'undeclared' }],
      ['.occurred_at', { occurred_at: '1970-01-01T00:00:00Z' }],
      ['.occurred_at', { occurred_at: 1_700_000_000 }],
      ['.occurred_at', { occurred_at: '2026-03-01T10:00:00' }],
      ['.amount', { amount: 129.9, currency: 'EUR' }],
      ['.amount', { amount: '-1', currency: 'EUR' }],
      ['.amount', { amount: '1e3', currency: 'EUR' }],
      ['.amount', { amount: '1.999', currency: 'EUR' }],
      ['.amount', { amount: '1.5', currency: 'JPY' }],
      ['.amount', { amount: '1234567890123', currency: 'EUR' }],
      ['.currency', { amount: '1', currency: 'eur' }],
      ['.currency', { amount: '1', currency: 'XYZ' }],
      ['.currency', { amount: '1' }],
      ['.amount', { currency: 'EUR' }],
      ['.amount', { label: 'retracted', amount: '1', currency: 'EUR' }],
      ['.covered_days', { covered_days: 0 }],
      ['.covered_days', { subject: { session_id: 's' }, covered_days: 3 }],
      ['.external_id', { external_id: '' }],
      ['.external_id', { external_id: 'x'.repeat(129) }],
      ['.note', { note: 'x'.repeat(501) }],
      ['.note', { note: 'a\0b' }],
      ['.amuont', { amuont: '1' }],
    ]
    for (const [path, fault] of faults) {
      const wrong = { ...ofDevice('refused-one'), ...fault }
      for (const [body, place] of [
        [wrong, `$${path}`],
        [[ofDevice('refused-one'), wrong], `$[1]${path}`],
      ] as const) {
        const answer = await add(body, writer)
        expect(answer.status, JSON.stringify(fault)).toBe(400)
        const { errors } = answer.json<{ errors: { path: string }[] }>()
        expect(errors.map((one) => one.path)).toEqual([place])
      }
    }
    const late = await add([ofDevice('refused-one', { occurred_at: ahead })], writer)
    expect(late.json()).toMatchObject({
      code: 'invalid_body',
      errors: [{ path: '$[0].occurred_at', message: 'is in the future' }],
    })
    for (const body of [[], Array.from({ length: 501 }, () => ofDevice('refused-one')), 'x', 7]) {
      const answer = await add(body, writer)
      expect([answer.status, answer.json<{ errors: unknown[] }>().errors.length]).toEqual([400, 1])
    }
    expect((await list('device_id=refused-one')).data).toEqual([])
  })

  test('of 500 with the longest notes are one call, and a larger body is a 413', async () => {
    const writer = await newWriter('longest')
    const long = (note: string) =>
      Array.from({ length: 500 }, (_, n) => ofDevice('long', { note, external_id: `cb-${n}` }))
    const taken = await add(long('字'.repeat(500)), writer)
    expect(taken.status, taken.text).toBe(201)
    expect(taken.json<{ data: unknown[] }>().data).toHaveLength(500)
    const refused = await add(long('x'.repeat(3_000)), writer)
    expect(refused.status).toBe(413)
    const pages: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const page = await list(`device_id=long&limit=200${query}`)
      pages.push(...page.data.map(({ external_id: id }) => id!))
      cursor = page.next_cursor
    }
    expect(new Set(pages).size).toBe(500)
    expect(pages).toHaveLength(500)
    const other = await list('device_id=long&limit=1')
    const foreign = await rig().call(`/v1/di/labels?cursor=${other.next_cursor}`, { key: key() })
    expect(foreign.status).toBe(400)
  })

  test('are filtered by subject, label, external id and time', async () => {
    const writer = await newWriter('filters')
    await declare('own_code', 'fraud')
    const more = { external_id: 'f-1', label: 'own_code' }
    await add(
      [
        { ...ofDevice('filtered'), ...more },
        { ...more, subject: { user_id: 'filtered' } },
      ],
      writer,
    )
    const count = async (query: string) => (await list(query)).data.length
    expect(await count('label=own_code')).toBe(2)
    expect(await count('user_id=filtered')).toBe(1)
    expect(await count('external_id=f-1&device_id=filtered')).toBe(1)
    expect(await count('label=own_code&from=2100-01-01')).toBe(0)
    expect(await count('label=own_code&to=2100-01-01')).toBe(2)
    const two = await rig().call('/v1/di/labels?user_id=a&device_id=b', { key: key() })
    expect(two.json()).toMatchObject({ code: 'invalid_query', errors: [{ path: 'user_id' }] })
  })

  test('are added once for an idempotency key, and another body under it is refused', async () => {
    const writer = await newWriter('once')
    const headers = { 'idempotency-key': 'labels-once' }
    const first = await add(ofDevice('once'), writer, headers)
    const again = await add(ofDevice('once'), writer, headers)
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text])
    expect(again.headers['idempotent-replayed']).toBe('true')
    const other = await add(ofDevice('twice'), writer, headers)
    expect([other.status, other.json<{ code: string }>().code]).toEqual([
      422,
      'idempotency_key_reused',
    ])
    const { data } = await list('external_id=none')
    expect(data).toEqual([])
    expect((await list('device_id=once')).data).toHaveLength(1)
    expect((await list('device_id=twice')).data).toHaveLength(0)
  })
}
