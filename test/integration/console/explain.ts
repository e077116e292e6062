// Explaining stored events: every answer of an edge is recomputed from the stored
// body and the stored policy, step by step; later changes of the data are reported.

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { EventExplanation } from '../../../services/console/events/explanation-schemas.ts'
import {
  admin,
  createTenant,
  ingest,
  readAlerts,
  type Submission,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** Tests on the stack of the file that calls this. */
export function describeExplanations(getRunning: () => TestStack): void {
  let running: TestStack
  let clickhouse: Clickhouse
  let postgres: Postgres
  let sandbox: Tenant

  beforeAll(async () => {
    running = getRunning()
    clickhouse = createClickhouse(running.stack.clickhouse, { name: 'test' })
    postgres = createPostgres(running.stack.postgres, {
      role: 'test',
      log: createLog('test', 'silent'),
    })
    sandbox = await createTenant(running.stack, 'sandbox')
  })
  afterAll(async () => {
    await Promise.all([clickhouse?.close(), postgres?.close()])
  })

  type Sent = { eventId: string; score: number; action: string; flags: string[] }

  async function send(tenant: Tenant, submission: Submission): Promise<Sent> {
    const answer = await ingest(
      running.stack,
      tenant.hmac_secret,
      toBody(tenant.tenant_id, submission),
    )
    expect(answer.status).toBe(200)
    const body = answer.body as Record<string, unknown>
    return {
      eventId: body.event_id as string,
      score: body.rasp_score as number,
      action: body.rasp_action as string,
      flags: body.flags as string[],
    }
  }

  type Refusal = { code: string; detail: string; errors?: { path: string }[] }

  async function getExplanation(eventId: string): Promise<{ status: number; body: unknown }> {
    const answer = await fetch(`${running.stack.console}/admin/v1/events/${eventId}/explanation`, {
      headers: { authorization: `Bearer ${running.stack.admin_token}` },
    })
    return { status: answer.status, body: await answer.json() }
  }

  /** Explains an event, once it is stored. */
  async function explain(eventId: string): Promise<EventExplanation> {
    return until(`event ${eventId} is explained`, async () => {
      const { status, body } = await getExplanation(eventId)
      if (status !== 404) expect(status, JSON.stringify(body)).toBe(200)
      return status === 200 ? (body as EventExplanation) : null
    })
  }

  async function refused(eventId: string): Promise<Refusal & { status: number }> {
    const { status, body } = await getExplanation(eventId)
    return { status, ...(body as Refusal) }
  }

  /** Changes a column of one stored event, as an intruder in the database would. */
  async function tamper(eventId: string, change: string): Promise<void> {
    await clickhouse.command({
      query: `alter table telemetry update ${change} where event_id = {event:String}`,
      query_params: { event: eventId },
      clickhouse_settings: { mutations_sync: '2' },
    })
  }

  const setPolicy = (tenant: Tenant, body: unknown) =>
    admin<{ version: number }>(running.stack, 'PUT', `/tenants/${tenant.tenant_id}/policy`, body)

  const submissions: Submission[] = [
    {},
    { signals: { debugger: { frida_detected: true } } },
    { signals: { root: { su_binary: true, magisk_detected: true, root_hiding: true } } },
    { signals: { root: { su_binary: true }, emulator: { is_emulator: true, qemu_props: true } } },
    { signals: { network: { vpn_active: true, proxy_configured: true, user_ca_installed: true } } },
    { signals: { root: { su_binary: null, made_up: true, adb_root: false } } },
    { signals: { tamper: { pi_device_verdict: [], app_attest_valid: false } } },
    {
      signals: {
        root: { magisk_detected: true, su_binary: true, rw_system_paths: true },
        emulator: { is_emulator: true, cloud_phone: true },
        debugger: { frida_detected: true, native_hooks: true },
        tamper: { signature_mismatch: true },
        ecosystem: { malware_detected: true },
        network: { mitm_detected: true },
      },
    },
  ]

  describe('a stored event', () => {
    it('gives the original answer, for each version of the policy that scored it', async () => {
      const tenant = await createTenant(running.stack, 'versions')
      const suppressions = [
        { signals: ['root.*'], sdkVersions: ['4.2.*'], expiresAt: null, reason: 'a bad release' },
      ]
      const policies = [null, { preset: 'strict' }, { ...presets.balanced, suppressions }]
      const sent: (Sent & { version: number })[] = []
      for (const [at, policy] of policies.entries()) {
        if (policy !== null) await setPolicy(tenant, policy)
        for (const [n, submission] of submissions.entries()) {
          const session = `v${at}-${n}`
          const answer = await send(tenant, { ...submission, device: session, session })
          sent.push({ ...answer, version: at + 1 })
        }
      }
      for (const answer of sent) {
        const explained = await explain(answer.eventId)
        expect(explained).toMatchObject({
          matches: true,
          evidence_differs: false,
          differences: [],
          body_intact: true,
          forced: null,
          policy: { version: answer.version, document_intact: true, created_by: 'admin' },
          recomputed: {
            rasp_score: answer.score,
            rasp_action: answer.action,
            flags: answer.flags,
          },
          steps: { score: answer.score, action: answer.action },
        })
        expect(explained.answered).toEqual(explained.recomputed)
      }
      // The versions gave different scores, so the comparison proves something.
      const scores = policies.map((_, at) =>
        sent.filter(({ version }) => version === at + 1).map(({ score }) => score),
      )
      expect(new Set(scores.map(String)).size).toBe(3)
      const steps = (await explain(sent[18]!.eventId)).steps.signals
      const ofRoot = steps.filter(({ signal }) => signal.startsWith('root.'))
      expect(ofRoot.map((step) => step.outcome)).toEqual(Array(3).fill('suppressed'))
      expect(ofRoot[0]!.suppressed_because).toBe('a bad release')
      // What no suppression names is explained as ever.
      expect(steps.filter((step) => !ofRoot.includes(step))).toMatchObject([
        { signal: 'attestation.missing', outcome: 'weightless' },
      ])
    })

    it('that was sent again is the one that was received first', async () => {
      const submission = { session: 'retried', signals: { network: { tor_ip: true } } }
      // A merge would leave only one of the two rows before the test reads them.
      await clickhouse.command({ query: 'system stop merges telemetry' })
      const first = await send(sandbox, submission)
      const { event } = await explain(first.eventId)
      await setPolicy(sandbox, { preset: 'strict' })
      const again = await send(sandbox, submission)
      await setPolicy(sandbox, { preset: 'balanced' })
      expect(again.eventId).toBe(first.eventId)
      expect(again.score).not.toBe(first.score)
      await until('both are stored', async () => {
        const rows = await clickhouse.query({
          query: 'select count() as n from telemetry where event_id = {event:String}',
          query_params: { event: first.eventId },
          format: 'JSONEachRow',
        })
        return (await rows.json<{ n: number }>())[0]!.n === 2
      })
      const explained = await explain(first.eventId)
      await clickhouse.command({ query: 'system start merges telemetry' })
      expect(explained.event).toEqual(event)
      expect(explained).toMatchObject({ matches: true, answered: { rasp_score: first.score } })
    })

    it('of a test device of a sandbox is explained as forced, with its original score', async () => {
      for (const [device, action, score] of [
        ['test-block', 'BLOCK', 75],
        ['test-review', 'REVIEW', 40],
        ['test-allow', 'ALLOW', 0],
      ] as const) {
        const signals = { debugger: { frida_detected: true } }
        const { eventId } = await send(sandbox, { device, session: device, signals })
        expect(await explain(eventId)).toMatchObject({
          matches: true,
          forced: { device_id: device, rasp_score: score, rasp_action: action },
          recomputed: { rasp_score: score, rasp_action: action, flags: ['SANDBOX_FORCED'] },
          steps: { score: 80, action: 'BLOCK' },
        })
      }
    })

    it('of a live tenant is never forced, with any device id', async () => {
      const live = await admin<Tenant>(running.stack, 'POST', '/tenants', { tenant_id: 'live' })
      const { eventId } = await send(live, { device: 'test-block' })
      const explained = await explain(eventId)
      expect(explained).toMatchObject({ matches: true, forced: null, answered: { rasp_score: 0 } })
    })

    it('shows the alerts of its session, their events, and the points of correlation', async () => {
      const tenant = await createTenant(running.stack, 'crowd')
      await setPolicy(tenant, { ...presets.balanced, scoreMismatch: null, signalsMissing: null })
      const signals = { root: { magisk_detected: true } }
      const sent: Sent[] = []
      for (let n = 1; n <= 5; n++) {
        const submission = { device: 'shared', session: `s-${n}`, user: `user-${n}`, signals }
        sent.push(await send(tenant, submission))
      }
      const later = await send(tenant, {
        device: 'shared',
        session: 's-5',
        user: 'user-5',
        signals,
        extra: { again: true },
      })
      await until('the alerts', async () => {
        const { total } = await readAlerts(running.stack, tenant.public_api_key)
        return total >= 5
      })
      const first = (await explain(sent[0]!.eventId)).alerts
      expect(first).toMatchObject([
        { raised_by_this_event: true, rasp_score: 45, risk_score: 45, correlation_reasons: [] },
      ])
      const fifth = (await explain(sent[4]!.eventId)).alerts
      expect(fifth).toMatchObject([
        {
          event_id: sent[4]!.eventId,
          raised_by_this_event: true,
          rasp_score: 45,
          risk_score: 65,
          correlation_reasons: [
            { code: 'MANY_USERS_PER_DEVICE', weight: 20, evidence: { count: 5, threshold: 3 } },
          ],
        },
      ])
      // Risk features are counted again at each event, without later events.
      expect((await explain(sent[0]!.eventId)).correlation).toEqual({
        risk_score: 45,
        action: 'REVIEW',
        reasons: [],
        retry: false,
        matches_alert: true,
      })
      expect((await explain(sent[4]!.eventId)).correlation).toEqual({
        risk_score: 65,
        action: 'REVIEW',
        reasons: [expect.objectContaining({ code: 'MANY_USERS_PER_DEVICE', weight: 20 })],
        retry: false,
        matches_alert: true,
      })
      expect((await explain(later.eventId)).correlation).toMatchObject({
        risk_score: 65,
        matches_alert: null,
      })
      const { alerts } = await explain(later.eventId)
      expect(alerts).toMatchObject([{ event_id: sent[4]!.eventId, raised_by_this_event: false }])
    })
  })

  describe('di explain', () => {
    const di = (...args: string[]) =>
      execFileSync(process.execPath, ['services/console/cli.ts', 'explain', ...args], {
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
        env: { ...nodeEnv(), DATA_DIR: running.dataDir },
        encoding: 'utf8',
      })

    it('prints the answer of the admin API, or every step for a reader', async () => {
      const signals = {
        root: { su_binary: true, magisk_detected: true, busybox_binary: null },
        debugger: { frida_detected: true },
      }
      const { eventId } = await send(sandbox, { device: 'read', session: 'read', signals })
      await until('its decision is stored', async () => {
        const { decided, answered } = await explain(eventId)
        return (decided?.reasons.length ?? 0) > (answered?.reasons?.length ?? 0)
      })
      const { alerts, correlation, ...explained } = await explain(eventId)
      expect(correlation).toMatchObject({ risk_score: 100, retry: false })
      expect(JSON.parse(di(eventId, '--json'))).toMatchObject(explained)
      const text = di(eventId)
      for (const line of [
        'answered    100 BLOCK',
        'recomputed  100 BLOCK',
        'matches     yes',
        'balanced, version ',
        'debugger.frida_detected  true   +75',
        'root.busybox_binary      null   not measured',
        'limited to 100',
        '75      HOOKING_DETECTED',
      ]) {
        expect(text).toContain(line)
      }
    })
  })

  describe('a stored event that was changed', () => {
    const fresh = async (session: string) => {
      const signals = { root: { magisk_detected: true } }
      const { eventId } = await send(sandbox, { device: session, session, signals })
      expect(await explain(eventId)).toMatchObject({ matches: true, answered: { rasp_score: 45 } })
      return eventId
    }
    const fields = ({ differences }: EventExplanation) => differences.map(({ field }) => field)

    it('does not match, and every difference is named', async () => {
      const eventId = await fresh('verdict')
      await tamper(eventId, `rasp_score = 0, rasp_action = 'ALLOW', flags = [], reasons = '[]'`)
      const explained = await explain(eventId)
      expect(explained).toMatchObject({
        matches: false,
        evidence_differs: false,
        body_intact: true,
      })
      expect(fields(explained)).toEqual(['rasp_score', 'rasp_action', 'flags', 'reasons'])
      expect(explained.differences[0]).toEqual({
        field: 'rasp_score',
        answered: 0,
        recomputed: 45,
      })
      const unreadable = await fresh('reasons')
      await tamper(unreadable, `reasons = '{}'`)
      expect(fields(await explain(unreadable))).toEqual(['reasons'])
      expect((await explain(unreadable)).answered.reasons).toBeNull()
    })

    it('with changed evidence matches, and reports that evidence differs', async () => {
      const eventId = await fresh('evidence')
      const { reasons } = (await explain(eventId)).answered
      const older = reasons!.map((reason) => ({ ...reason, evidence: { was: 'written so' } }))
      await tamper(eventId, `reasons = '${JSON.stringify(older)}'`)
      expect(await explain(eventId)).toMatchObject({ matches: true, evidence_differs: true })
    })

    it('with a changed body is distinguished from the signed one', async () => {
      const eventId = await fresh('body')
      await tamper(eventId, `body = replaceOne(body, '"magisk_detected":true', '"su_binary":true')`)
      const explained = await explain(eventId)
      expect(explained).toMatchObject({ matches: false, body_intact: false })
      expect(fields(explained)).toEqual(['rasp_score', 'reasons'])
      await tamper(eventId, `body = substring(body, 2)`)
      expect(await refused(eventId)).toMatchObject({ status: 422, code: 'event_not_explainable' })
      expect((await refused(eventId)).detail).toContain(`stored body of event ${eventId}`)
    })

    it('with a changed policy is reported: another, an unknown, a rewritten version', async () => {
      const tenant = await createTenant(running.stack, 'rewritten')
      await setPolicy(tenant, { ...presets.balanced, name: 'mine' })
      const { eventId } = await send(tenant, { signals: { root: { magisk_detected: true } } })
      const { policy } = await explain(eventId)
      expect(policy).toMatchObject({ version: 2, name: 'mine', document_intact: true })
      await tamper(eventId, 'policy_version = 1')
      expect(fields(await explain(eventId))).toEqual(['policy_hash'])
      await tamper(eventId, 'policy_version = 2')
      await postgres.query(
        `update policy_documents set text = replace(text, '"magisk_detected":45', '"magisk_detected":9')
       where policy_hash = $1`,
        [policy.policy_hash],
      )
      const explained = await explain(eventId)
      expect(explained.policy.document_intact).toBe(false)
      expect(fields(explained)).toEqual(['rasp_score', 'rasp_action', 'reasons'])
      await postgres.query(`update policy_documents set text = '{' where policy_hash = $1`, [
        policy.policy_hash,
      ])
      expect((await refused(eventId)).detail).toContain('which this release cannot read')
      await tamper(eventId, `policy_hash = 'gone'`)
      const gone = await refused(eventId)
      expect(gone).toMatchObject({ status: 422, code: 'event_not_explainable' })
      expect(gone.detail).toContain('policy document gone, which is not stored here')
    })
  })

  describe('an unknown event', () => {
    it('is a 404, and an invalid event id a 400', async () => {
      expect(await refused(`evt_${'A'.repeat(22)}`)).toMatchObject({
        status: 404,
        code: 'event_not_found',
      })
      const bad = await refused('evt_1')
      expect(bad).toMatchObject({ status: 400, code: 'invalid_path' })
      expect(bad.errors!.map((fault) => fault.path)).toEqual(['event_id'])
    })
  })
}
