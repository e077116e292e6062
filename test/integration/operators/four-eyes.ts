// Drafts of policies and four eyes: what one administrator proposes and another one approves is
// done once, by the function that also does it without four eyes, with both names in the audit log.
import { hash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type GuardedKind, guardedKinds } from '#shared/core/approvals/four-eyes.ts'
import { endpointAccess } from '#shared/core/operators/roles.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { removeEndedProposals } from '#shared/io/approvals/proposal-store.ts'
import { addListEntry } from '#shared/io/lists/change-lists.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import type { Answer, Call, Member, OperatorsRig } from '../../support/http/operators-rig.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Loose = any
const read = ({ body }: Answer): Loose => body

const strict = (name: string) => ({ ...presets.strict, name })

const wideEntry = {
  list: 'deny',
  kind: 'country',
  id: 'DE',
  reason: 'fraud',
  expires_at: null,
} as const

/** What is proposed of each effect. */
const proposals: Record<GuardedKind, object> = {
  policy: { document: strict('two') },
  rotation: { credentials: { hmac: true } },
  install_root: { action: 'rotate' },
  erasure: { subject: { device_id: 'd1' } },
  bulk: { change: { filter: {}, expected_count: 2, disposition: 'REVIEWED' } },
  bulk_undo: {},
  four_eyes: { setting: { enabled: false } },
  api_key: { key: { name: 'crm', scopes: ['lists:write'] } },
  retention: { periods: { alerts: 1 } },
  wide_list_entry: { entry: { ...wideEntry, kind: 'asn', id: 'AS64500' } },
  suspension: {},
  shared_secret: { off: true },
}

/** Tests on the rig of the file that calls this. */
export function describeFourEyes(getRig: () => OperatorsRig): void {
  let rig: OperatorsRig
  let ana: Member
  let ben: Member
  let analyst: Member
  let tenants = 0

  beforeAll(async () => {
    rig = getRig()
    ;[ana, ben, analyst] = [
      await rig.join('admin'),
      await rig.join('admin'),
      await rig.join('analyst'),
    ]
  })

  const as = async (member: Member, more: Call = {}): Promise<Call> => ({
    cookie: await rig.openSession(member.operatorId, { steppedUp: true }),
    ...more,
  })
  const callAs = async (member: Member, method: string, path: string, body?: unknown) =>
    rig.call(method, path, await as(member, body === undefined ? {} : { body }))
  const mustAs = async (
    status: number,
    member: Member,
    [method, path, body]: readonly [string, string, unknown?],
  ): Promise<Loose> =>
    read(await rig.must(status, method, path, await as(member, body === undefined ? {} : { body })))

  async function createTenant(fourEyes?: { bulk_above: number }): Promise<string> {
    const tenant_id = `eyes-${tenants++}`
    await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
    if (fourEyes !== undefined) {
      const setting = { enabled: true, ...fourEyes }
      await mustAs(200, ana, ['PUT', `/tenants/${tenant_id}/four-eyes`, setting])
    }
    return tenant_id
  }

  const raise = async (tenantId: string, ids: readonly string[]) =>
    raiseAlerts(
      rig.postgres,
      ids.map((sessionId) => makeAlertCandidate({ tenantId, sessionId })),
    )

  const propose = (tenant: string, member: Member, body: object, status = 201) =>
    mustAs(status, member, ['POST', `/tenants/${tenant}/proposals`, { reason: 'why', ...body }])
  const end = (tenant: string, id: string, how: string) =>
    ['POST', `/tenants/${tenant}/proposals/${id}/${how}`, {}] as const

  const findAudit = async (tenant: string, action: string): Promise<Loose[]> => {
    const path = `/tenants/${tenant}/audit?action=${action}`
    return read(await rig.must(200, 'GET', path, { token: rig.adminToken })).data
  }
  const findVersion = async (tenant: string) =>
    mustAs(200, ana, ['GET', `/tenants/${tenant}/policy`])

  /** A bulk change that is done. @returns its id */
  async function makeJob(tenant: string): Promise<string> {
    const bulk = `/tenants/${tenant}/alerts/bulk-disposition`
    const change = { expected_count: 2, filter: {}, disposition: 'REVIEWED' }
    const { job_id: jobId } = await mustAs(202, analyst, ['POST', bulk, change])
    await rig.postgres.query(
      `update bulk_jobs set state = 'done', ended_at = now(), changed = 2 where job_id = $1`,
      [jobId],
    )
    await rig.postgres.query(
      `insert into alert_dispositions (tenant_id, alert_id, actor, from_disposition,
         to_disposition, job_id)
       select tenant_id, alert_id, 'test', 'OPEN', 'REVIEWED', $1 from alerts
       where tenant_id = $2`,
      [jobId, tenant],
    )
    return jobId
  }

  describe('four eyes', () => {
    it('refuse every guarded endpoint of the table, and change nothing', async () => {
      const tenant = await createTenant()
      await raise(tenant, ['s1', 's2'])
      const change = { expected_count: 2, filter: {}, disposition: 'REVIEWED' }
      const jobId = await makeJob(tenant)
      const draft = await mustAs(201, ana, [
        'POST',
        `/tenants/${tenant}/drafts`,
        { text: JSON.stringify(strict('drafted')), base_version: 1 },
      ])
      await mustAs(200, ana, [
        'PUT',
        `/tenants/${tenant}/four-eyes`,
        { enabled: true, bulk_above: 1 },
      ])
      const { rows } = await rig.postgres.query<{ case_id: string }>(
        'select distinct case_id from alerts where tenant_id = $1',
        [tenant],
      )
      expect(rows).toHaveLength(1)
      const bodies: Record<string, unknown> = {
        'PUT /tenants/:tenant_id/policy': strict('direct'),
        'POST /tenants/:tenant_id/drafts/:draft_id/publish': { reason: 'why', revision: 1 },
        'POST /tenants/:tenant_id/rotate': { hmac: true },
        'POST /tenants/:tenant_id/install-root/rotate': {},
        'DELETE /tenants/:tenant_id/install-root/previous': undefined,
        'POST /tenants/:tenant_id/erasures': { device_id: 'd1', wait: false },
        'POST /tenants/:tenant_id/alerts/bulk-disposition': change,
        'POST /tenants/:tenant_id/alerts/bulk-assign': {
          filter: {},
          expected_count: 2,
          assignee: null,
        },
        'POST /bulk-jobs/:job_id/undo': {},
        'POST /cases/:case_id/judgement': { disposition: 'CONFIRMED' },
        'PUT /tenants/:tenant_id/four-eyes': { enabled: false },
        'POST /tenants/:tenant_id/keys': { name: 'crm', scopes: ['alerts:write'] },
        'PUT /tenants/:tenant_id/retention': { events: 1 },
        'POST /tenants/:tenant_id/lists': wideEntry,
        'POST /tenants/:tenant_id/suspend': undefined,
        'PUT /tenants/:tenant_id/shared-secret': { off: true },
      }
      const guarded = Object.entries(endpointAccess).filter(
        ([, access]) => 'guarded' in access && access.guarded !== undefined,
      )
      const kinds = guarded.map(([, access]) => (access as { guarded: string }).guarded)
      expect(new Set(kinds)).toEqual(new Set(guardedKinds))
      const count = async () => {
        const { rows } = await rig.postgres.query(
          `select (select epoch from tenants where tenant_id = $1) as epoch,
             (select count(*) from erasures where tenant_id = $1) as erasures,
             (select count(*) from bulk_jobs where tenant_id = $1) as jobs,
             (select max(epoch) from install_roots where tenant_id = $1) as root,
             (select count(*) from api_keys where tenant_id = $1) as keys,
             (select count(*) from list_entries where tenant_id = $1) as entries,
             (select row_to_json(t)::text from tenants as t where tenant_id = $1) as tenant,
             (select count(*) from rotations where tenant_id = $1) as rotations`,
          [tenant],
        )
        return rows[0]
      }
      const before = await count()
      for (const [name] of guarded) {
        expect(Object.keys(bodies), `a body for ${name}`).toContain(name)
        const [method = '', path = ''] = name.split(' ')
        const to = path
          .replace(':tenant_id', tenant)
          .replace(':draft_id', draft.draft_id)
          .replace(':job_id', jobId)
          .replace(':case_id', rows[0]!.case_id)
        const body = bodies[name] === undefined ? {} : { body: bodies[name] }
        for (const [caller, answer] of [
          ['an administrator', await callAs(ana, method, to, bodies[name])],
          ['the token', await rig.call(method, to, { token: rig.adminToken, ...body })],
        ] as const) {
          const said = [name, caller, answer.status, answer.body.code]
          expect(said).toEqual([name, caller, 409, 'approval_required'])
          expect(answer.body.detail).toContain(`/tenants/${tenant}/proposals`)
        }
      }
      expect(await count()).toEqual(before)
      expect(await findVersion(tenant)).toMatchObject({ version: 1 })
      const setting = await mustAs(200, ana, ['GET', `/tenants/${tenant}/four-eyes`])
      expect(setting).toEqual({ tenant_id: tenant, enabled: true, bulk_above: 1 })
    })

    it('publish a policy once another administrator approves, with both names', async () => {
      const tenant = await createTenant({ bulk_above: 100 })
      const proposal = await propose(tenant, ana, { kind: 'policy', document: strict('four') })
      expect(proposal).toMatchObject({
        summary: 'Publish the policy four in place of version 1.',
        state: 'open',
        may_approve: false,
        policy: { base_version: 1, backtest: null },
      })
      expect(proposal.policy.changes).toContainEqual({
        path: 'name',
        before: '"balanced"',
        after: '"four"',
      })
      const approve = end(tenant, proposal.proposal_id, 'approve')
      expect(await mustAs(403, ana, approve)).toMatchObject({ code: 'forbidden' })
      expect(await mustAs(403, analyst, approve)).toMatchObject({ code: 'forbidden' })
      expect(await findVersion(tenant)).toMatchObject({ version: 1 })
      // Two consoles, or two clicks: one of them carries it out.
      const both = await Promise.all([callAs(ben, ...approve), callAs(ben, ...approve)])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
      const won = both.find(({ status }) => status === 200)!
      expect(read(won)).toMatchObject({
        proposal: { state: 'approved', ended_by: ben.email },
        result: { version: 2, previous_version: 1 },
      })
      expect(await findVersion(tenant)).toMatchObject({
        version: 2,
        name: 'four',
        reason: 'why',
        created_by: ana.email,
        approved_by: ben.email,
      })
      expect(await findAudit(tenant, 'proposal.approved')).toMatchObject([
        {
          actor: ben.email,
          before: { proposed_by: ana.email },
          after: { approved_by: ben.email, kind: 'policy' },
        },
      ])
      expect(await findAudit(tenant, 'policy.set')).toMatchObject([
        { actor: ana.email, after: { version: 2, approved_by: ben.email } },
      ])
    })

    it('void a proposal when what it was based on changed', async () => {
      const tenant = await createTenant()
      const first = await propose(tenant, ana, { kind: 'policy', document: strict('one') })
      const second = await propose(tenant, ana, { kind: 'policy', document: strict('two') })
      const keys = await propose(tenant, ana, { kind: 'rotation', credentials: { hmac: true } })
      await mustAs(200, ben, end(tenant, first.proposal_id, 'approve'))
      const shown = await mustAs(200, ben, [
        'GET',
        `/tenants/${tenant}/proposals/${second.proposal_id}`,
      ])
      expect(shown).toMatchObject({ state: 'void', may_approve: false })
      expect(await mustAs(409, ben, end(tenant, second.proposal_id, 'approve'))).toMatchObject({
        code: 'conflict',
      })
      // A direct change counts as well, while four eyes are off.
      await mustAs(200, ben, ['POST', `/tenants/${tenant}/rotate`, { webhook: true }])
      const open = await mustAs(200, ben, ['GET', `/tenants/${tenant}/proposals?state=open`])
      expect(open.data).toEqual([])
      expect((await findAudit(tenant, 'proposal.voided')).length).toBe(2)
      expect(keys.summary).toBe('Rotate the HMAC secret. The old ones end at once.')
    })

    it.each(Object.entries(proposals))(
      'let two persons who may do it now, and nobody else, bring about: %s',
      async (kind, body) => {
        const tenant = await createTenant()
        await raise(tenant, ['s1', 's2'])
        const more = kind === 'bulk_undo' ? { job_id: await makeJob(tenant) } : {}
        const setting = { enabled: true, bulk_above: 1 }
        await mustAs(200, ana, ['PUT', `/tenants/${tenant}/four-eyes`, setting])
        const asked = { kind, reason: 'why', ...body, ...more }
        const token = rig.adminToken
        await rig.must(403, 'POST', `/tenants/${tenant}/proposals`, { token, body: asked })
        const author = await rig.join('admin')
        const { proposal_id: id } = await propose(tenant, author, asked)
        const approve = end(tenant, id, 'approve')
        const change = (set: string) =>
          rig.postgres.query(`update operators set ${set} where email = $1`, [author.email])
        await mustAs(403, author, approve)
        await rig.must(403, 'POST', approve[1], { token, body: {} })
        await change(`role = 'viewer'`)
        await mustAs(403, ben, approve)
        await change(`role = 'admin', tenants = '{another}'`)
        await mustAs(403, ben, approve)
        await change(`tenants = null, disabled_at = now()`)
        expect(await mustAs(403, ben, approve)).toMatchObject({ code: 'forbidden' })
        await change('disabled_at = null')
        const open = await mustAs(200, ben, ['GET', `/tenants/${tenant}/proposals?state=open`])
        expect(open.data).toMatchObject([{ proposal_id: id, may_approve: true }])
        const { proposal } = await mustAs(200, ben, approve)
        expect(proposal).toMatchObject({ state: 'approved', author: author.email })
        expect(proposal.ended_by).toBe(ben.email)
      },
    )

    it('let one person do what has no such effect', async () => {
      const tenant = await createTenant({ bulk_above: 1 })
      const of = `/tenants/${tenant}`
      await mustAs(201, ana, ['POST', `${of}/keys`, { name: 'reads', scopes: ['read'] }])
      await mustAs(200, ana, ['PUT', `${of}/retention`, { events: 800 }])
      await mustAs(201, analyst, ['POST', `${of}/lists`, { ...wideEntry, kind: 'device' }])
      const network = { ...wideEntry, kind: 'network', id: '8.8.0.0/16' }
      await mustAs(201, analyst, ['POST', `${of}/lists`, network])
      await mustAs(409, analyst, ['POST', `${of}/lists`, { ...network, id: '8.8.0.0/15' }])
      await mustAs(200, ana, ['POST', `${of}/resume`])
      await mustAs(200, ana, ['PUT', `${of}/shared-secret`, { off: false }])
    })

    it('hold a key to what one person may do, unless two persons made it', async () => {
      const tenant = await createTenant()
      const sessions = Array.from({ length: 8 }, (_, n) => `s${n}`)
      await raise(tenant, sessions)
      const { rows } = await rig.postgres.query<{ alert_id: string }>(
        'select alert_id from alerts where tenant_id = $1 order by alert_id',
        [tenant],
      )
      const ids = rows.map((row) => row.alert_id)
      const keys = `/tenants/${tenant}/keys`
      const scopes = ['alerts:write', 'lists:write']
      const { api_key: ofOne } = await mustAs(201, ana, ['POST', keys, { name: 'one', scopes }])
      const setting = { enabled: true, bulk_above: 2 }
      await mustAs(200, ana, ['PUT', `/tenants/${tenant}/four-eyes`, setting])
      const asked = { kind: 'api_key', key: { name: 'two', scopes } }
      const { proposal_id: id } = await propose(tenant, ana, asked)
      const { result } = await mustAs(200, ben, end(tenant, id, 'approve'))
      const store = createAlertStore(rig.postgres)
      const by = (name: string, key: string) =>
        ({
          tenantId: tenant,
          actor: `api-key:${name}`,
          keyHash: hash('sha256', key, 'buffer'),
        }) as const
      const set = (
        caller: ReturnType<typeof by>,
        alertIds: readonly string[],
        disposition: 'REVIEWED' | 'CONFIRMED' = 'REVIEWED',
      ) => store.setListedDispositions({ ...caller, alertIds, disposition, note: null })
      const one = by('one', ofOne)
      const refused = { code: 'approval_required' }
      await expect(set(one, ids.slice(0, 3))).rejects.toMatchObject(refused)
      await set(one, ids.slice(0, 1))
      // What is set already is no change.
      await set(one, ids.slice(0, 1))
      await expect(set(one, ids.slice(1, 3))).rejects.toMatchObject(refused)
      const { tenantId, ...alone } = one
      const single = { ...alone, scope: [tenantId], note: null, disposition: 'REVIEWED' as const }
      await store.setDisposition({ ...single, alertId: ids[1]! })
      await expect(store.setDisposition({ ...single, alertId: ids[2]! })).rejects.toMatchObject(
        refused,
      )
      expect(await set(by('two', result.api_key), ids, 'CONFIRMED')).toHaveLength(8)
      const deny = (caller: ReturnType<typeof by>) =>
        addListEntry(rig.postgres, { ...caller, entry: wideEntry, nowMs: Date.now() })
      await expect(deny(one)).rejects.toMatchObject(refused)
      expect(await deny(by('two', result.api_key))).toMatchObject({ id: 'DE' })
    })

    it('give new credentials to whoever approved the rotation', async () => {
      const tenant = await createTenant({ bulk_above: 100 })
      const asked = { kind: 'rotation', credentials: { webhook: true } }
      const { proposal_id: id } = await propose(tenant, ana, asked)
      const { result } = await mustAs(200, ben, end(tenant, id, 'approve'))
      const keys = ['POST', `/tenants/${tenant}/rotation/keys`, {}] as const
      expect(await mustAs(200, ben, keys)).toMatchObject({ webhook_secret: result.webhook_secret })
      expect(await mustAs(403, ana, keys)).toMatchObject({ code: 'forbidden' })
    })

    it('record an approved rotation that is undone as failed, by whoever approved it', async () => {
      const tenant = await createTenant({ bulk_above: 100 })
      const asked = { kind: 'rotation', credentials: { hmac: true } }
      const { proposal_id: id } = await propose(tenant, ana, asked)
      const { directory } = rig.deps
      let calls = 0
      const project: typeof directory.project = async (projection) => {
        if (++calls === 1) throw new Error('timeout')
        return directory.project(projection)
      }
      const app = await rig.createApp({ directory: { ...directory, project } })
      const [method, path, body] = end(tenant, id, 'approve')
      await rig.must(503, method, path, await as(ben, { app, body }))
      const shown = await mustAs(200, ana, ['GET', `/tenants/${tenant}/proposals/${id}`])
      expect(shown).toMatchObject({ state: 'failed', ended_by: ben.email })
      expect(await findAudit(tenant, 'proposal.failed')).toMatchObject([
        { actor: ben.email, after: { proposal_id: id, note: shown.note } },
      ])
    })

    it('start a bulk change of about as many alerts as its author saw, and no other', async () => {
      const tenant = await createTenant({ bulk_above: 5 })
      const sessions = Array.from({ length: 40 }, (_, n) => `s${n}`)
      await raise(tenant, sessions.slice(0, 12))
      const ask = async (count: number) =>
        propose(tenant, analyst, {
          kind: 'bulk',
          change: { filter: {}, expected_count: count, disposition: 'REVIEWED' },
        })
      await expect(ask(11)).rejects.toThrow('409')
      const near = await ask(12)
      const far = await ask(12)
      await raise(tenant, sessions.slice(12, 22))
      const approve = (id: string) => end(tenant, id, 'approve')
      const { result } = await mustAs(200, ben, approve(near.proposal_id))
      expect(result).toMatchObject({ total: 22, actor: analyst.email, state: 'running' })
      await raise(tenant, sessions.slice(22))
      const refused = await mustAs(409, ben, approve(far.proposal_id))
      expect(refused.code).toBe('proposal_void')
      const shown = await mustAs(200, ana, [
        'GET',
        `/tenants/${tenant}/proposals/${far.proposal_id}`,
      ])
      expect(shown).toMatchObject({ state: 'void', note: '40 alerts match now, not 12.' })
      const few = { filter: { device_id: 'none' }, expected_count: 0, disposition: 'REVIEWED' }
      const bulk = `/tenants/${tenant}/alerts/bulk-disposition`
      await mustAs(202, analyst, ['POST', bulk, few])
      await propose(tenant, analyst, { kind: 'rotation', credentials: {} }, 403)
    })

    it('keep the id of an erasure sealed, and forget it when the proposal ends', async () => {
      const tenant = await createTenant({ bulk_above: 5 })
      const asked = { kind: 'erasure', subject: { device_id: 'phone-of-ida' } }
      const first = await propose(tenant, ana, asked)
      const second = await propose(tenant, ana, asked)
      expect(first.subject).toMatchObject({ kind: 'device', id: 'phone-of-ida' })
      const rows = async () =>
        (
          await rig.postgres.query<{ text: string; sealed: string | null }>(
            'select row_to_json(p)::text as text, sealed from proposals p where tenant_id = $1',
            [tenant],
          )
        ).rows
      expect((await rows()).map(({ text }) => text.includes('phone-of-ida'))).toEqual([
        false,
        false,
      ])
      const { result } = await mustAs(200, ben, end(tenant, first.proposal_id, 'approve'))
      expect(result).toMatchObject({ requested_by: ana.email, state: 'waiting' })
      // The other one is of the same device: it is erased once.
      expect((await rows()).map(({ sealed }) => sealed)).toEqual([null, null])
      expect(await mustAs(409, ben, end(tenant, second.proposal_id, 'approve'))).toMatchObject({
        code: 'conflict',
      })
      await rig.postgres.query(
        `update proposals set expires_at = now() - interval '1 second' where tenant_id = $1`,
        [tenant],
      )
      expect(await removeEndedProposals(rig.postgres, Date.now(), 100)).toBe(2)
    })

    it('let a proposal expire, be rejected or withdrawn without a change', async () => {
      const tenant = await createTenant({ bulk_above: 5 })
      const ask = () => propose(tenant, ana, { kind: 'install_root', action: 'rotate' })
      const [late, rejected, withdrawn] = [await ask(), await ask(), await ask()]
      await rig.postgres.query(
        `update proposals set expires_at = now() - interval '1 second' where proposal_id = $1`,
        [late.proposal_id],
      )
      expect(await mustAs(409, ben, end(tenant, late.proposal_id, 'approve'))).toMatchObject({
        detail: 'The proposal is not open any more: it is expired.',
      })
      await mustAs(403, ben, end(tenant, withdrawn.proposal_id, 'withdraw'))
      await mustAs(200, ana, end(tenant, withdrawn.proposal_id, 'withdraw'))
      await mustAs(200, ben, end(tenant, rejected.proposal_id, 'reject'))
      const { data } = await mustAs(200, ben, ['GET', `/tenants/${tenant}/proposals`])
      expect(data.map(({ state }: Loose) => state)).toEqual(['withdrawn', 'rejected', 'expired'])
      expect(await findAudit(tenant, 'install_root.rotation_begun')).toEqual([])
    })
  })

  describe('a draft of a policy', () => {
    it('is shared, refuses a change from an older revision, and is published with a reason', async () => {
      const tenant = await createTenant()
      const drafts = `/tenants/${tenant}/drafts`
      const text = '{"name": "half typed'
      const made = await mustAs(201, ana, ['POST', drafts, { text, base_version: 1, comment: 'x' }])
      const of = `${drafts}/${made.draft_id}`
      expect(
        await mustAs(400, ben, ['POST', `${of}/publish`, { reason: 'r', revision: 1 }]),
      ).toMatchObject({ code: 'invalid_policy' })
      const change = { text: JSON.stringify(strict('typed')), base_version: 1, revision: 1 }
      const changed = await mustAs(200, ben, ['PUT', of, change])
      expect(changed).toMatchObject({ revision: 2, created_by: ana.email, updated_by: ben.email })
      expect(await mustAs(409, ana, ['PUT', of, change])).toMatchObject({ code: 'draft_changed' })
      await mustAs(404, ana, ['PUT', of, { ...change, revision: 2, base_version: 9 }])
      const { data } = await mustAs(200, analyst, ['GET', drafts])
      expect(data).toMatchObject([{ name: 'typed', base_version: 1, in_force_version: 1 }])
      await mustAs(403, analyst, ['PUT', of, { ...change, revision: 2 }])
      await mustAs(409, ana, ['POST', `${of}/publish`, { reason: 'because', revision: 1 }])
      await mustAs(200, ana, ['POST', `${of}/publish`, { reason: 'because', revision: 2 }])
      expect(await findVersion(tenant)).toMatchObject({ version: 2, reason: 'because' })
      await mustAs(404, ana, ['GET', of])
    })

    it('is not published once another version is in force', async () => {
      const tenant = await createTenant()
      const text = JSON.stringify(strict('late'))
      const drafts = `/tenants/${tenant}/drafts`
      const { draft_id: id } = await mustAs(201, ana, ['POST', drafts, { text, base_version: 1 }])
      await mustAs(200, ben, ['PUT', `/tenants/${tenant}/policy?reason=soon`, strict('first')])
      const publish = ['POST', `${drafts}/${id}/publish`, { reason: 'r', revision: 1 }] as const
      expect(await mustAs(409, ana, publish)).toMatchObject({ code: 'policy_conflict' })
      const shown = await mustAs(200, ana, ['GET', `${drafts}/${id}`])
      expect(shown).toMatchObject({ base_version: 1, in_force_version: 2 })
      const asked = { kind: 'policy', draft_id: id }
      expect(await propose(tenant, ana, asked, 409)).toMatchObject({ code: 'policy_conflict' })
    })
  })
}
