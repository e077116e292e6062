// The scorer as a process: every accepted event is stored in ClickHouse and, if it must alert,
// raises one alert, under redelivery, kills and several scorers.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { deliveryHintSchema } from '#shared/core/deliveries/delivery-hint.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash, type VelocityMetric } from '#shared/core/policies/policy.ts'
import {
  deadLetterStream,
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { awaitReplayed, replayTelemetry } from '#shared/io/nats/replay-telemetry.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { toSentDevice } from '../../support/identity/sent-devices.ts'
import { until } from '../../support/process/until.ts'
import {
  type EventFacts,
  encodeEvent,
  makeElement,
  makeRegistrationElement,
  signalsOf,
} from '../../support/telemetry/accepted-events.ts'
import { startProxy } from '../../support/telemetry/edge-rig.ts'
import {
  createScorerRig,
  type ScorerProcess,
  type ScorerRig,
} from '../../support/telemetry/scorer-rig.ts'
import { proveBatch } from '../../support/telemetry/telemetry-proof.ts'

let rig: ScorerRig
/** Runs during all tests that need no other scorer; tests that end processes start their own. */
let scorer: ScorerProcess
let tenantId: string
let tenants = 0

beforeAll(async () => {
  rig = await createScorerRig()
  scorer = await rig.startScorer()
})
afterAll(() => rig?.close())
beforeEach(async () => {
  tenantId = `tenant-${++tenants}`
  await rig.addTenant(tenantId)
})

type AlertRow = {
  seq: number
  device_id: string
  session_id: string
  action: string
  risk_score: number
  rasp_score: number
  reasons: { code: string; weight: number; evidence: Record<string, unknown> }[]
}

async function readAlerts(of = tenantId): Promise<AlertRow[]> {
  const { rows } = await rig.postgres.query<AlertRow>(
    `select seq, device_id, session_id, action, risk_score, rasp_score, reasons
     from alerts where tenant_id = $1 order by seq`,
    [of],
  )
  return rows
}

async function countDeliveries(of = tenantId): Promise<number> {
  const { rows } = await rig.postgres.query<{ n: number }>(
    'select count(*) as n from deliveries where tenant_id = $1',
    [of],
  )
  return rows[0]!.n
}

async function countEvents(of = tenantId): Promise<number> {
  const result = await rig.clickhouse.query({
    query: 'select uniqExact(event_id) from telemetry where tenant_id = {tenant:String}',
    query_params: { tenant: of },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[number]>()
  return row![0]
}

const find = (deviceId = 'device-1', of = tenantId) =>
  rig.history.findDevice({ tenantId: of, deviceId, sessionsLimit: 10_000, before: null })

const nowMs = Date.now()
/** Twenty points by themselves: below REVIEW, and above it with velocity's thirty. */
const cloned = { emulator: { app_cloned: true } }
const sessions = (count: number, some: EventFacts = {}): EventFacts[] =>
  Array.from({ length: count }, (_, n) => ({
    tenantId,
    sessionId: `s-${String(n).padStart(4, '0')}`,
    receivedAtMs: nowMs + n,
    signals: cloned,
    ...some,
  }))

describe('an accepted event', () => {
  it('is stored in the history and raises an alert, a delivery and a hint', async () => {
    const hints: unknown[] = []
    const subscription = rig.nats.connection.subscribe('alerts.delivery', {
      callback: (_error, message) => hints.push(message.json()),
    })
    await rig.publish([
      { tenantId, userId: 'u', signals: signalsOf.BLOCK, receivedAtMs: nowMs },
      { tenantId, sessionId: 'calm', signals: signalsOf.ALLOW, receivedAtMs: nowMs + 1 },
    ])
    await rig.drained()
    const device = await find()
    expect(device).toMatchObject({ users: ['u'], sessionsTotal: 2, firstSeenAtMs: nowMs })
    const alerts = await readAlerts()
    expect(alerts).toHaveLength(1)
    expect(alerts[0]).toMatchObject({ seq: 1, session_id: 'session-1', action: 'BLOCK' })
    const weights = alerts[0]!.reasons.map((reason) => reason.weight)
    expect(weights.reduce((a, b) => a + b)).toBe(alerts[0]!.risk_score)
    expect(await countDeliveries()).toBe(1)
    await until('the hint has come', () => hints.length === 1)
    expect(deliveryHintSchema.parse(hints[0]).tenant_id).toBe(tenantId)
    subscription.unsubscribe()
  })

  it('raises one alert per action of its session, with any number of events', async () => {
    const levels = ['REVIEW', 'REVIEW', 'BLOCK', 'REVIEW', 'BLOCK', 'ALLOW'] as const
    const events = levels.map((level, n) => ({
      tenantId,
      signals: signalsOf[level],
      receivedAtMs: nowMs + n,
      nonce: n,
    }))
    await rig.publish(events, events.slice(0, 2), [events[3]!])
    await rig.drained()
    const raised = (await readAlerts()).map((alert) => alert.action)
    expect(raised.sort()).toEqual(['BLOCK', 'REVIEW'])
  })

  it('of a removed tenant is stored, raises nothing and blocks nothing', async () => {
    const gone = `${tenantId}-gone`
    await rig.publish([
      { tenantId: gone, signals: signalsOf.BLOCK },
      { tenantId, signals: signalsOf.BLOCK },
    ])
    await rig.drained()
    expect(await readAlerts()).toHaveLength(1)
    expect(await readAlerts(gone)).toHaveLength(0)
    expect(await countEvents(gone)).toBe(1)
    expect(await scorer.readMetric('di_alerts_of_unknown_tenants_total')).toBe(1)
  })
})

describe('velocity', () => {
  it('raises HIGH_VELOCITY at the first session above the threshold and not earlier', async () => {
    await rig.publish(sessions(23))
    await rig.drained()
    const alerts = (await readAlerts()).sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
    expect(alerts.map((alert) => alert.session_id)).toEqual(['s-0020', 's-0021', 's-0022'])
    expect(alerts[0]).toMatchObject({ action: 'REVIEW', risk_score: 50, rasp_score: 20 })
    expect(alerts[0]!.reasons).toContainEqual({
      code: 'HIGH_VELOCITY',
      weight: 30,
      evidence: { metric: 'sessions_per_device', count: 21, threshold: 20, window: '5m' },
    })
  })

  it('raises MANY_USERS_PER_DEVICE at the first user above the threshold', async () => {
    const events = ['a', 'b', 'c', 'd'].map((userId, n) => ({
      tenantId,
      userId,
      sessionId: `s-${userId}`,
      signals: cloned,
      receivedAtMs: nowMs + n,
    }))
    for (const event of events) {
      await rig.publish([event])
      await rig.drained()
    }
    const alerts = await readAlerts()
    expect(alerts.map((alert) => alert.session_id)).toEqual(['s-d'])
    expect(alerts[0]!.reasons).toContainEqual({
      code: 'MANY_USERS_PER_DEVICE',
      weight: 20,
      evidence: { metric: 'users_per_device', count: 4, threshold: 3, window: '1d' },
    })
  })

  it('raises SIGNALS_MISSING for an empty category that the SDK version always fills', async () => {
    const filled = Object.fromEntries(
      ['root', 'emulator', 'debugger', 'tamper', 'ecosystem', 'network'].map((category) => [
        category,
        { anything: false },
      ]),
    )
    const hoursAgo = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 5 * 3_600_000
    const usual = Array.from({ length: 120 }, (_, n) => ({
      tenantId,
      deviceId: `usual-${n}`,
      sessionId: `usual-${n}`,
      receivedAtMs: hoursAgo + n,
      signals: filled,
    }))
    await rig.publish(usual)
    const rooted = { root: { su_binary: true, anything: false } }
    const stripped = { ...filled, ...rooted, debugger: {}, tamper: { pi_device_verdict: null } }
    await rig.publish([
      { tenantId, sessionId: 'whole', signals: { ...filled, ...rooted } },
      { tenantId, sessionId: 'stripped', signals: stripped },
    ])
    await rig.drained()
    const alerts = await readAlerts()
    const reasonOf = (sessionId: string) =>
      alerts
        .find((alert) => alert.session_id === sessionId)
        ?.reasons.find((reason) => reason.code === 'SIGNALS_MISSING')
    expect(reasonOf('whole')).toBeUndefined()
    expect(reasonOf('stripped')).toEqual({
      code: 'SIGNALS_MISSING',
      weight: 15,
      evidence: {
        metric: 'missing_categories',
        count: 2,
        threshold: 0,
        window: '24h',
        categories: ['debugger', 'tamper'],
        sdk_version: '4.2.0',
      },
    })
  })

  it('counts nothing by a placeholder id, and reports that', async () => {
    const placeholders = ['unknown', '00000000-0000-0000-0000-000000000000', '9774d56d682e549c']
    const launches = Array.from({ length: 150 }, (_, n) => ({
      tenantId,
      deviceId: placeholders[n % 3]!,
      sessionId: `launch-${n}`,
      userId: `person-${n}`,
      accountId: n % 2 === 0 ? 'anonymous' : 'null',
      receivedAtMs: nowMs + n,
      signals: cloned,
    }))
    for (let at = 0; at < launches.length; at += 50) await rig.publish(launches.slice(at, at + 50))
    await rig.drained()
    expect(await readAlerts()).toEqual([])
    // It counts neither as a device of a user or session, nor as a user of a device.
    const real = ['a', 'b', 'c'].map((user, n) => ({
      tenantId,
      deviceId: 'real',
      sessionId: `launch-${n}`,
      userId: user,
      accountId: 'guest',
      receivedAtMs: nowMs + 200 + n,
      signals: cloned,
    }))
    await rig.publish(real)
    await rig.drained()
    expect(await readAlerts()).toEqual([])
    await rig.publish([{ ...launches[0]!, nonce: 1, signals: signalsOf.BLOCK }])
    await rig.drained()
    const [alert] = await readAlerts()
    expect(alert?.action).toBe('BLOCK')
    expect(alert!.reasons.map(({ code }) => code)).toEqual([
      'HOOKING_DETECTED',
      'SCORE_MISMATCH',
      'PLACEHOLDER_ID',
    ])
    expect(alert!.reasons).toContainEqual({
      code: 'PLACEHOLDER_ID',
      weight: 0,
      evidence: { fields: ['device_id', 'account_id'] },
    })
    const label = `tenant="${tenantId}",field="device_id"`
    expect(await scorer.readMetric('di_placeholder_ids_total', label)).toBe(151)
  })

  it('alone leads to REVIEW at most', async () => {
    const people = Array.from({ length: 60 }, (_, n) => ({
      tenantId,
      sessionId: `s-${n}`,
      userId: `person-${n}`,
      receivedAtMs: nowMs + n,
      more: { scorer: { rasp_score: 90, rasp_action: 'BLOCK', rasp_flags: ['X'] } },
      signals: { ecosystem: { adb_enabled: true } },
    }))
    const rule = (metric: VelocityMetric, weight: number) =>
      ({ metric, windowSeconds: 300, threshold: 3, weight }) as const
    const velocity = [rule('sessions_per_device', 60), rule('users_per_device', 60)]
    const policy = { ...defaultPolicy, name: 'heavy', velocity }
    await rig.postgres.query(
      'insert into policy_documents (policy_hash, document, text) values ($1, $2, $3)',
      [toPolicyHash(policy), policy, JSON.stringify(policy)],
    )
    await rig.publish(people.map((one) => ({ ...one, policy })))
    await rig.drained()
    const alerts = await readAlerts()
    expect(alerts.length).toBeGreaterThan(50)
    for (const { action, risk_score: score, reasons } of alerts) {
      expect({ action, score }).toEqual({ action: 'REVIEW', score: 74 })
      expect(reasons.reduce((sum, { weight }) => sum + weight, 0)).toBe(74)
    }
  })

  it('never mixes two tenants with the same device and session ids', async () => {
    const other = `${tenantId}-other`
    await rig.addTenant(other)
    await rig.publish([...sessions(15), ...sessions(15, { tenantId: other })])
    await rig.publish([{ tenantId: other, signals: signalsOf.BLOCK, userId: 'theirs' }])
    await rig.drained()
    expect(await readAlerts()).toEqual([])
    expect(await readAlerts(other)).toHaveLength(1)
    expect((await find())?.sessionsTotal).toBe(15)
    expect((await find())?.users).toEqual([])
    expect((await find('device-1', other))?.sessionsTotal).toBe(16)
  })

  it('does not change the forced action of a sandbox test device', async () => {
    const forced = sessions(25).map((facts) => {
      const { body, ...header } = JSON.parse(makeElement({ ...facts, deviceId: 'test-allow' }))
      const reasons = [{ code: 'SANDBOX_FORCED', weight: 0, evidence: {} }]
      const allowed = { ...header, rasp_score: 0, rasp_action: 'ALLOW', reasons }
      return encodeEvent(allowed, JSON.stringify(body))
    })
    await rig.publishRaw(Buffer.from(`[${forced.join()}]`))
    await rig.drained()
    expect((await find('test-allow'))?.sessionsTotal).toBe(25)
    expect(await readAlerts()).toEqual([])
  })
})

describe('a reinstall', () => {
  const install = (deviceId: string, phone: number, at: number, more: EventFacts = {}) => ({
    tenantId,
    deviceId,
    sessionId: deviceId,
    receivedAtMs: nowMs + at,
    more: { device: toSentDevice(phone) },
    ...more,
  })
  const readLinks = async () => {
    const result = await rig.clickhouse.query({
      query: `select device_id, phone_id, toString(kind), installs from phone_links final
        where tenant_id = {tenant:String} order by device_id`,
      query_params: { tenant: tenantId },
      format: 'JSONCompactEachRow',
    })
    return result.json()
  }

  const deny = (deviceId: string, at: number) =>
    rig.postgres.query(
      `insert into list_entries
         (entry_id, tenant_id, list, kind, id, reason, created_by, shard, created_at)
       values ($1, $2, 'deny', 'device', $3, 'fraud', 'admin', 0, to_timestamp($4))`,
      [`lst_${tenantId.padEnd(22, '0')}`, tenantId, deviceId, (nowMs + at) / 1_000],
    )

  it('of a phone on the deny list leads to REVIEW, and the alert names the phone', async () => {
    await rig.publish([install('banned', 1, 0), install('other', 2, 1)])
    await rig.drained()
    await deny('banned', 5_000)
    const before = install('early', 1, 4_000, { nonce: 1 })
    await rig.publish([
      before,
      install('evader', 1, 6_000),
      install('other', 2, 6_001, { nonce: 2 }),
    ])
    await rig.drained()
    const phoneId = toPhoneId(tenantId, 'banned')
    expect(await readLinks()).toEqual([
      ['banned', phoneId, 'first', []],
      ['early', phoneId, 'linked', ['banned']],
      ['evader', phoneId, 'linked', ['banned', 'early']],
      ['other', toPhoneId(tenantId, 'other'), 'first', []],
    ])
    const [alert, ...more] = await readAlerts()
    expect(more).toEqual([])
    expect(alert).toMatchObject({ device_id: 'evader', action: 'REVIEW' })
    expect(alert!.reasons.reduce((sum, { weight }) => sum + weight, 0)).toBe(alert!.risk_score)
    expect(alert!.reasons.map(({ code }) => code)).toEqual(['DENY_LISTED_PHONE', 'REINSTALLED'])
    expect(alert!.reasons[0]!.evidence).toMatchObject({ phone_id: phoneId })
    expect(JSON.stringify(alert!.reasons)).not.toContain('banned')
    const { rows } = await rig.postgres.query<{ phone_id: string; phone_confidence: number }>(
      'select phone_id, phone_confidence from alerts where tenant_id = $1',
      [tenantId],
    )
    expect(rows[0]!.phone_id).toBe(phoneId)
    expect(rows[0]!.phone_confidence).toBeGreaterThan(0.99)
    expect(await scorer.readMetric('di_phone_links_total', 'kind="linked"')).toBe(2)
  })

  it.each([
    ['sends its identifiers and leaves out the rest', 'first'],
    ['sends all that its owner does', 'linked'],
  ])('of a phone is not reached by a denial of a copier who %s', async (_, kind) => {
    const { identifiers, ...rest } = toSentDevice(1)
    const copied = { identifiers, ...(kind === 'linked' ? rest : {}) }
    await rig.publish([
      install('owner', 1, 0),
      install('copier', 1, 1, { more: { device: copied } }),
    ])
    await rig.drained()
    await deny('copier', 5_000)
    await rig.publish([install('next', 1, 6_000)])
    await rig.drained()
    expect(await readLinks()).toMatchObject([
      ['copier', expect.anything(), kind, expect.anything()],
      ['next', toPhoneId(tenantId, 'owner'), 'linked', expect.anything()],
      ['owner', toPhoneId(tenantId, 'owner'), 'first', []],
    ])
    expect(await readAlerts()).toEqual([])
  })

  it('is one phone to its keys, and another phone with them is named', async () => {
    const register = (deviceId: string) =>
      makeRegistrationElement({
        tenant_id: tenantId,
        device_id: deviceId,
        token_id: `token-${deviceId}`,
        provider: 'key_attestation',
        verdict: 'verified',
        level: 'hardware',
        attested_key: `key-${tenantId}-${deviceId}`,
        issuers: [`certificate-${tenantId}`, 'maker'],
        remotely_provisioned: true,
      })
    const send = async (deviceId: string, phone: number, at: number) => {
      await rig.publishRaw(Buffer.from(`[${register(deviceId)}]`))
      const attested = {
        token_id: `token-${deviceId}`,
        attested_key: `key-${tenantId}-${deviceId}`,
      }
      await rig.publish([install(deviceId, phone, at, { install: attested })])
      await rig.drained()
    }
    await send('before', 1, 1)
    await send('cleared', 1, 2)
    expect(await readAlerts()).toEqual([])
    await send('other', 2, 3)
    const [alert, ...more] = await readAlerts()
    expect(more).toEqual([])
    expect(alert).toMatchObject({ device_id: 'other' })
    expect(alert!.reasons[0]).toMatchObject({
      code: 'ATTESTATION_KEY_SHARED',
      evidence: { metric: 'phones_per_issuer', count: 2, phones: [toPhoneId(tenantId, 'before')] },
    })
  })

  it('is told from two phones that send one device id in turns', async () => {
    const turn = (phone: number, at: number) =>
      install('shared', phone, at, { sessionId: `s-${at}`, nonce: at })
    await rig.publish([turn(1, 1)])
    await rig.drained()
    // It has not read the first.
    const second = await rig.startScorer()
    await rig.publish([turn(2, 2), turn(1, 3)])
    await rig.publish([turn(2, 4)])
    await rig.drained()
    await rig.redeliverAll()
    await rig.drained()
    await second.end('SIGTERM')
    const result = await rig.clickhouse.query({
      query: `select session_id, flags from decisions final
        where tenant_id = {tenant:String} order by session_id`,
      query_params: { tenant: tenantId },
      format: 'JSONCompactEachRow',
    })
    expect(await result.json()).toEqual([
      ['s-2', ['DEVICE_ID_SHARED']],
      ['s-4', ['DEVICE_ID_SHARED']],
    ])
  })

  it('that an analyst took off its phone, or put on another, counts so from then on', async () => {
    const correct = (n: number, deviceId: string, to: string, at: number) =>
      rig.postgres.query(
        `insert into phone_corrections
           (correction_id, tenant_id, device_id, from_phone_id, phone_id, reason, actor, at)
         values ($1, $2, $3, $4, $5, 'sold', 'admin', to_timestamp($6))`,
        [
          `phc_${`${tenantId}-${n}`.padEnd(22, '0')}`,
          ...[tenantId, deviceId, toPhoneId(tenantId, 'banned'), toPhoneId(tenantId, to)],
          (nowMs + at) / 1_000,
        ],
      )
    await rig.postgres.query(
      `insert into list_entries
         (entry_id, tenant_id, list, kind, id, reason, created_by, shard, created_at)
       values ($1, $2, 'deny', 'device', 'banned', 'fraud', 'admin', 0, to_timestamp($3))`,
      [`lst_${tenantId.padEnd(22, '0')}`, tenantId, (nowMs - 5_000) / 1_000],
    )
    await rig.publish([install('banned', 1, 0), install('buyer', 1, 1), install('other', 2, 2)])
    await rig.drained()
    await correct(1, 'buyer', 'buyer', 1_000)
    await correct(2, 'other', 'banned', 2_000)
    const seen = (deviceId: string, at: number) =>
      install(deviceId, deviceId === 'other' ? 2 : 1, at, { sessionId: `${deviceId}-${at}` })
    await rig.publish([seen('buyer', 900), seen('buyer', 1_100)])
    await rig.publish([seen('other', 1_900), seen('other', 2_100)])
    await rig.drained()
    const { rows } = await rig.postgres.query<{ session_id: string; phone_id: string }>(
      'select session_id, phone_id from alerts where tenant_id = $1 order by session_id',
      [tenantId],
    )
    const phone_id = toPhoneId(tenantId, 'banned')
    expect(rows).toEqual(
      ['buyer', 'buyer-900', 'other-2100'].map((session_id) => ({ session_id, phone_id })),
    )
  })

  it('counts towards rules on installs and users of a phone', async () => {
    const rule = (metric: VelocityMetric, threshold: number) =>
      ({ metric, windowSeconds: 3_600, threshold, weight: 50 }) as const
    const velocity = [rule('installs_per_phone', 2), rule('users_per_phone', 1)]
    const policy = { ...defaultPolicy, name: 'phones', velocity }
    await rig.postgres.query(
      'insert into policy_documents (policy_hash, document, text) values ($1, $2, $3)',
      [toPolicyHash(policy), policy, JSON.stringify(policy)],
    )
    const seen = (deviceId: string, at: number, userId: string) =>
      install(deviceId, 3, at, { policy, userId })
    await rig.publish([seen('a', 0, 'ada'), seen('b', 1, 'ada'), seen('c', 2, 'ada')])
    // An hour later two installs count, and their users.
    await rig.publish([seen('d', 3_600_001, 'bob')])
    await rig.drained()
    const found = (await readAlerts()).map(({ device_id, reasons }) => [
      device_id,
      ...reasons.filter(({ weight }) => weight > 0).map(({ evidence }) => evidence),
    ])
    expect(found.sort()).toEqual([
      ['c', { metric: 'installs_per_phone', count: 3, threshold: 2, window: '1h' }],
      ['d', { metric: 'users_per_phone', count: 2, threshold: 1, window: '1h' }],
    ])
  })
})

describe('500 equal installs', () => {
  it('are on one phone, and an event of another tenant among them is decided', async () => {
    const other = `${tenantId}-other`
    await rig.addTenant(other)
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const identifiers = Object.fromEntries(names.map((name) => [name, name.padEnd(22, '-')]))
    const device = { ...toSentDevice(1), identifiers }
    const flood = Array.from({ length: 500 }, (_, n) => ({
      tenantId,
      deviceId: `equal-${n}`,
      sessionId: `equal-${n}`,
      userId: 'user',
      accountId: 'account',
      more: { device },
    }))
    const risky = { tenantId: other, signals: signalsOf.BLOCK, more: { device: toSentDevice(2) } }
    const failures = () =>
      scorer.readMetric('di_consume_failures_total', `consumer="${deciderConsumer}"`)
    const before = await failures()
    const batches = [0, 125, 250, 375].map((at) => flood.slice(at, at + 125))
    await rig.publish(...batches.slice(0, 2), [risky], ...batches.slice(2))
    await rig.drained()
    expect(await readAlerts(other)).toMatchObject([{ action: 'BLOCK' }])
    const result = await rig.clickhouse.query({
      query: `select toString(kind), phone_id, count() from phone_links final
        where tenant_id = {tenant:String} group by all order by 1`,
      query_params: { tenant: tenantId },
      format: 'JSONCompactEachRow',
    })
    const phoneId = toPhoneId(tenantId, 'equal-0')
    expect(await result.json()).toEqual([
      ['first', phoneId, 1],
      ['linked', phoneId, 499],
    ])
    expect(await failures()).toBe(before)
    expect(await scorer.readMetric('di_phone_steps_total')).toBeGreaterThan(500)
    expect(await scorer.readMetric('di_phone_links_uncompared_total')).toBe(0)
  })
})

describe('repetition', () => {
  it('of everything changes nothing: neither history nor counts nor alerts', async () => {
    const mixed = [signalsOf.ALLOW, signalsOf.REVIEW, signalsOf.BLOCK, cloned]
    const events = sessions(60).map((facts, n) => ({
      ...facts,
      sessionId: `s-${n % 45}`,
      userId: `u-${n % 7}`,
      signals: mixed[n % 4]!,
      nonce: n,
    }))
    for (let at = 0; at < 60; at += 12) await rig.publish(events.slice(at, at + 12))
    await rig.drained()
    const before = { device: await find(), alerts: await readAlerts(), n: await countDeliveries() }
    expect(before.alerts.length).toBeGreaterThan(20)
    for (let round = 0; round < 2; round++) {
      await rig.redeliverAll()
      await rig.drained()
    }
    const after = { device: await find(), alerts: await readAlerts(), n: await countDeliveries() }
    expect(after).toEqual(before)
    expect(after.alerts.map((alert) => alert.seq)).toEqual(after.alerts.map((_, n) => n + 1))
  })

  it('since an instant brings back what ClickHouse and Postgres lost after it', async () => {
    const block = { tenantId, deviceId: 'device-1', signals: signalsOf.BLOCK }
    await rig.publish(sessions(10))
    await rig.drained()
    const since = Date.now()
    await rig.publish([{ ...block, sessionId: 'later', userId: 'u' }])
    await rig.publish([{ ...block, sessionId: 'latest' }])
    await rig.drained()
    const before = { device: await find(), alerts: await readAlerts(), n: await countDeliveries() }
    expect(before.alerts).toHaveLength(2)
    // Both stores forget what came after.
    const ofTenant = `where tenant_id = '${tenantId}'`
    const later = `${ofTenant} and session_id like 'late%'`
    for (const [table, where] of [
      ['telemetry', later],
      ['sessions', later],
      ['devices', ofTenant],
      ['user_devices', ofTenant],
    ]) {
      const query = `delete from ${table} ${where}`
      await rig.clickhouse.command({ query })
    }
    await rig.postgres.query(`delete from deliveries ${ofTenant}`)
    await rig.postgres.query(`delete from alerts ${ofTenant}`)
    await rig.postgres.query(`update alert_sequences set last_seq = 0 ${ofTenant}`)
    const replays = await replayTelemetry(rig.nats, since)
    expect(replays.map(({ messages }) => messages)).toEqual([2])
    await awaitReplayed(rig.nats, replays)
    const after = { device: await find(), alerts: await readAlerts(), n: await countDeliveries() }
    // Numbers are given anew: two alerts of one batch may change places.
    const bySession = (alerts: AlertRow[]) =>
      new Map(alerts.map(({ seq: _, ...alert }) => [alert.session_id, alert]))
    expect(bySession(after.alerts)).toEqual(bySession(before.alerts))
    expect(after.alerts.map(({ seq }) => seq)).toEqual([1, 2])
    expect(after.n).toBe(before.n)
    expect(after.device?.sessions).toEqual(before.device?.sessions)
    expect(after.device?.users).toEqual(before.device?.users)
    // A migration accepts consumers that begin elsewhere.
    await ensureStreams(rig.nats)
    await rig.publish([{ ...block, sessionId: 'next' }])
    await rig.drained()
    expect(await readAlerts()).toHaveLength(3)
  })

  it('of the same bytes by a client raises nothing, after any later events', async () => {
    const [first, ...rest] = sessions(30)
    await rig.publish([first!])
    await rig.drained()
    await rig.publish(rest)
    await rig.drained()
    const alerts = await readAlerts()
    // Now the device is far above the threshold: a new event of that session would be REVIEW.
    await rig.publish([{ ...first!, receivedAtMs: nowMs + 60_000 }])
    await rig.drained()
    expect(await readAlerts()).toEqual(alerts)
    expect((await find())?.sessionsTotal).toBe(30)
    expect(await scorer.readMetric('di_events_retried_total')).toBeGreaterThan(0)
  })
})

describe('poison', () => {
  it('is quarantined and counted while its neighbours are processed', async () => {
    const good = makeElement({ tenantId, signals: signalsOf.BLOCK })
    const { body, ...header } = JSON.parse(makeElement({ tenantId, sessionId: 'foreign' }))
    const foreign = encodeEvent(header, JSON.stringify({ ...body, tenant_id: 'somebody-else' }))
    const info = await rig.nats.manager.streams.info(deadLetterStream)
    const dropped = (reason: string) =>
      scorer.readMetric('di_events_dropped_total', `reason="${reason}"`)
    expect(await dropped('invalid_event')).toBe(0)
    await rig.publishRaw(Buffer.from(`[${foreign},${good},{"no":"event"},null]`))
    await rig.publishRaw(Buffer.from('not json'))
    await rig.publishRaw(Buffer.from('{"not":"an array"}'))
    const forged = makeElement({ tenantId, sessionId: 'forged', signals: signalsOf.BLOCK })
    await rig.nats.jetstream.publish(telemetrySubject, `[${forged}]`)
    const stolen = { headers: proveBatch('[]') }
    await rig.nats.jetstream.publish(telemetrySubject, `[${forged}]`, stolen)
    await rig.publish([{ tenantId, sessionId: 'after' }])
    await rig.drained()
    expect(await countEvents()).toBe(2)
    expect(await readAlerts()).toHaveLength(1)
    expect(await dropped('invalid_event')).toBe(3)
    expect(await dropped('unreadable_batch')).toBe(2)
    expect(await dropped('unproven_batch')).toBe(2)
    const kept = await rig.nats.manager.streams.info(deadLetterStream)
    expect(kept.state.messages - info.state.messages).toBe(7)
    const deadLetter = await rig.nats.manager.streams.getMessage(deadLetterStream, {
      seq: info.state.last_seq + 1,
    })
    expect(deadLetter.header.get('Reason')).toBe('invalid_event')
    expect(deadLetter.string()).toBe(foreign)
  })
})

it('a message that is garbled on its way is read again, stored and decided', async () => {
  await scorer.end('SIGTERM')
  let garbled = 0
  // Every time it is delivered; a message that is read by its sequence comes as base64.
  const proxy = await startProxy(rig.natsServer.url, (bytes) => {
    const text = bytes.toString('latin1')
    if (!text.includes('on-its-way')) return bytes
    garbled++
    return Buffer.from(text.replaceAll('on-its-way', 'on-no-ways'), 'latin1')
  })
  const behind = await rig.startScorer({ NATS_URL: proxy.url })
  const letters = async () => (await rig.nats.manager.streams.info(deadLetterStream)).state.messages
  const before = await letters()
  try {
    await rig.publish(
      [{ tenantId, sessionId: 'before', nonce: 1 }],
      [{ tenantId, sessionId: 'on-its-way', signals: signalsOf.BLOCK, nonce: 2 }],
      [{ tenantId, sessionId: 'after', nonce: 3 }],
    )
    await rig.drained()
    expect(garbled).toBeGreaterThan(0)
    expect(await countEvents()).toBe(3)
    expect((await readAlerts()).map((alert) => alert.session_id)).toEqual(['on-its-way'])
    expect(await behind.readMetric('di_messages_garbled_total')).toBeGreaterThan(0)
    expect(await letters()).toBe(before)
  } finally {
    await behind.end('SIGTERM')
    proxy.close()
    scorer = await rig.startScorer()
  }
})

describe('an outage', () => {
  it('of ClickHouse, killed during a batch, loses nothing', async () => {
    const events = sessions(400, { signals: signalsOf.REVIEW })
    const send = async () => {
      for (let at = 0; at < events.length; at += 10) await rig.publish(events.slice(at, at + 10))
    }
    const sending = send()
    await until('some events are stored', async () => (await countEvents()) > 0)
    await rig.killClickhouse()
    await sending
    await until('the scorer says what is missing', async () => {
      const answer = await fetch(`${scorer.url}/readyz`)
      const { missing } = (await answer.json()) as { missing?: Record<string, string> }
      return answer.status === 503 && missing?.clickhouse !== undefined
    })
    expect(await rig.isDrained()).toBe(false)
    await rig.restartClickhouse()
    await rig.drained()
    expect(await countEvents()).toBe(400)
    expect((await find())?.sessionsTotal).toBe(400)
    expect(await readAlerts()).toHaveLength(400)
    expect((await fetch(`${scorer.url}/readyz`)).status).toBe(200)
  })

  it('of Postgres delays alerts and loses none', async () => {
    await rig.postgresServer.kill('SIGKILL')
    await rig.publish(sessions(50, { signals: signalsOf.BLOCK }))
    await until('history goes on meanwhile', async () => (await countEvents()) === 50)
    await rig.postgresServer.restart()
    await rig.drained()
    expect(await readAlerts()).toHaveLength(50)
    expect(await countDeliveries()).toBe(50)
  })
})

describe('several scorers', () => {
  it('share the work; a kill of one loses nothing and duplicates nothing', async () => {
    const second = await rig.startScorer()
    const events = Array.from({ length: 600 }, (_, n) => ({
      tenantId,
      deviceId: `d-${n % 40}`,
      // A session that is on two devices would raise an alert of its own.
      sessionId: `s-${n % 40}-${n % 150}`,
      signals: n % 3 === 0 ? signalsOf.REVIEW : signalsOf.ALLOW,
      receivedAtMs: nowMs + n,
      nonce: n,
    }))
    for (let at = 0; at < 600; at += 4) {
      await rig.publish(events.slice(at, at + 4))
      if (at === 300) await second.end('SIGKILL')
      if (at === 400) await rig.startScorer()
    }
    await rig.drained()
    expect(await countEvents()).toBe(600)
    const sessionsOf = new Set(
      events.filter((_, n) => n % 3 === 0).map((one) => `${one.deviceId} ${one.sessionId}`),
    )
    const alerts = await readAlerts()
    const raised = alerts.map((alert) => `${alert.device_id} ${alert.session_id}`)
    expect(raised.sort()).toEqual([...sessionsOf].sort())
    expect(alerts.map((alert) => alert.seq).sort((a, b) => a - b)).toEqual(
      alerts.map((_, n) => n + 1),
    )
  })

  it('decide nothing while earlier events are unacknowledged, and then all of it', async () => {
    await rig.endScorers()
    const all = sessions(22)
    await rig.publish(all.slice(0, 20))
    const consumer = await rig.nats.jetstream.consumers.get(telemetryStream, scorerConsumer)
    const pending = await until('the first message', () => consumer.next({ expires: 5_000 }))
    // Else, on a busy machine, the broker would give it to the scorer.
    const holding = setInterval(() => pending.working(), 1_000)
    onTestFinished(() => clearInterval(holding))
    await rig.publish(all.slice(20))
    const waiting = await rig.startScorer()
    await until('the later ones are stored', async () => (await countEvents()) === 2)
    await until('the decider has the first in hand, and waits for it to be stored', async () => {
      const info = await rig.nats.manager.consumers.info(telemetryStream, deciderConsumer)
      return info.num_ack_pending === 1
    })
    await until('only the unacknowledged message is not stored', async () => {
      const unacknowledged = await waiting.readMetric(
        'di_consume_unacknowledged',
        'consumer="scorer"',
      )
      return unacknowledged === 1
    })
    expect(await readAlerts()).toHaveLength(0)
    clearInterval(holding)
    pending.nak()
    await rig.drained()
    const raised = (await readAlerts()).map((alert) => alert.session_id)
    expect(raised.sort()).toEqual(['s-0020', 's-0021'])
  })

  it('stop in order on SIGTERM and leave no unacknowledged message', async () => {
    await rig.endScorers()
    const first = await rig.startScorer()
    const sending = (async () => {
      for (const event of sessions(200)) await rig.publish([event])
    })()
    await until('it works', async () => (await countEvents()) > 0)
    // One that does not end in time is ended by another status.
    expect(await first.end('SIGTERM')).toBe(0)
    await sending
    await rig.startScorer()
    await rig.drained()
    expect(await countEvents()).toBe(200)
  })
})
