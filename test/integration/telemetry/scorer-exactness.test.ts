// Decisions are a function of the stream: one scorer, two concurrent ones, killed and paused ones,
// and full redelivery all raise the same alerts and store the same decisions, with the same points
// and evidence; and the same registrations of installs and replays.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seed } from '../../support/process/seed.ts'
import { until } from '../../support/process/until.ts'
import {
  type EventFacts,
  makeElement,
  makeRegistrationElement,
  signalsOf,
} from '../../support/telemetry/accepted-events.ts'
import {
  createScorerRig,
  type ScorerProcess,
  type ScorerRig,
} from '../../support/telemetry/scorer-rig.ts'
import { connectionFacts, makeConnection } from '../../support/velocity/connection-model.ts'

let rig: ScorerRig
const tenantIds = ['exact-a', 'exact-b']

beforeAll(async () => {
  rig = await createScorerRig()
  for (const tenantId of tenantIds) await rig.addTenant(tenantId)
})
afterAll(() => rig?.close())
process.stdout.write(`scorer exactness seed ${seed}\n`)
const nowMs = Date.now()

/**
 * Events of few devices that exceed every threshold, in messages as several edges send them, with
 * registrations of installs among them.
 */
function makeStream(): Buffer[] {
  const facts = fc.sample(
    fc.record({
      tenantId: fc.constantFrom(...tenantIds),
      deviceId: fc.integer({ min: 1, max: 9 }).map((n) => `d-${n}`),
      sessionId: fc.integer({ min: 1, max: 90 }).map((n) => `s-${n}`),
      userId: fc.integer({ min: 1, max: 14 }).map((n) => `u-${n}`),
      accountId: fc.option(
        fc.integer({ min: 1, max: 14 }).map((n) => `a-${n}`),
        { nil: undefined, freq: 2 },
      ),
      connection: fc.option(
        fc
          .tuple(fc.constantFrom(...connectionFacts), fc.integer({ min: 1, max: 8 }))
          .map(([from, network]) => makeConnection(from, network)),
        { nil: undefined, freq: 2 },
      ),
      skewMs: fc.integer({ min: -2_000, max: 2_000 }),
      signals: fc.constantFrom(
        signalsOf.ALLOW,
        signalsOf.REVIEW,
        signalsOf.BLOCK,
        { emulator: { app_cloned: true } },
        { root: { su_binary: false, dangerous_props: true } },
        { root: { su_binary: true } },
      ),
      platform: fc.constantFrom('android', 'android', 'android', 'android', 'ios'),
      client: fc.constantFrom(0, 40, 90),
    }),
    { seed, numRuns: 1_000 },
  )
  const events = facts.map(
    ({ skewMs, platform, client, ...rest }, n): EventFacts => ({
      ...rest,
      receivedAtMs: nowMs - 60_000 + n * 40 + skewMs,
      nonce: n,
      more: {
        sdk_meta: { sdk_version: '4.2.0', platform, batch_type: 'launch' },
        scorer: { rasp_score: client, rasp_action: 'ALLOW', rasp_flags: [] },
      },
    }),
  )
  // A client sends the same bytes again: later in the stream, and decided when they first came.
  const withRetries = events.flatMap((event, n) => {
    const retried = events[n - 40]
    if (n % 25 !== 0 || retried === undefined) return [event]
    // Every other copy comes so late that it is a replay.
    const lateMs = n % 50 === 0 ? 15 * 60_000 : 0
    return [event, { ...retried, receivedAtMs: event.receivedAtMs! + lateMs }]
  })
  const messages: Buffer[] = []
  for (let at = 0, size = 1; at < withRetries.length; at += size) {
    size = 1 + ((at * 7) % 9)
    const elements = withRetries.slice(at, at + size).map(makeElement)
    if (at % 3 === 0) elements.splice(at % 2, 0, toRegistration(at))
    if (at % 11 === 0) messages.push(Buffer.from(`[${toRegistration(at + 1_000_000)}]`))
    messages.push(Buffer.from(`[${elements.join(',')}]`))
  }
  return messages
}

/** A registration of one of few keys on one of few devices. */
const toRegistration = (n: number) =>
  makeRegistrationElement(
    {
      tenant_id: tenantIds[n % 2]!,
      device_id: `d-${(n % 9) + 1}`,
      provider: 'key_attestation',
      verdict: n % 5 === 0 ? 'rejected' : 'verified',
      attested_key: `key-${n % 7}`,
      issuers: [`issuer-${n % 4}`],
      device_model: `model-${n % 13}`,
      token_id: `token-${n}`,
    },
    nowMs - 60_000 + n * 40,
  )

/** Every stored decision, what came with it, and the risk of every session, merged or not. */
async function readDecisions(): Promise<unknown[]> {
  const queries = [
    `select * from decisions final
     order by tenant_id, device_id, session_id, event_id`,
    `select tenant_id, device_id, session_id, max(risk) as risk from sessions
     group by tenant_id, device_id, session_id order by tenant_id, device_id, session_id`,
    'select * from installs final order by tenant_id, device_id, token_id',
    'select * from install_keys final order by key_hash, kind, subject_hash, issuer_hash',
    'select * from replays final order by tenant_id, device_id, session_id, event_id, hour',
  ]
  const results = await Promise.all(
    queries.map((query) => rig.clickhouse.query({ query, format: 'JSONEachRow' })),
  )
  return Promise.all(results.map((result) => result.json()))
}

type AlertRow = { tenant_id: string; alert_id: string; event_id: string; seq: number }

async function readAlerts(): Promise<AlertRow[]> {
  const { rows } = await rig.postgres.query<AlertRow>(
    `select tenant_id, alert_id, seq, device_id, session_id, user_id, event_id, action, risk_score,
       rasp_score, reasons
     from alerts order by tenant_id, alert_id`,
  )
  return rows
}

/** Resets the scorers to the state before the first message. */
async function startOver(): Promise<void> {
  await rig.endScorers()
  await rig.postgres.query(
    `truncate alerts, alert_sequences, alert_counts_by_day, alert_counts_by_hour, deliveries, cases,
       case_changes cascade`,
  )
  for (const table of [
    ...['telemetry', 'decisions', 'activity', 'devices', 'sessions', 'user_devices'],
    ...['installs', 'install_keys', 'replays'],
  ]) {
    await rig.clickhouse.command({ query: `truncate table ${table}` })
  }
  await rig.redeliverAll()
}

const withoutSeq = (alerts: readonly AlertRow[]) => alerts.map(({ seq, ...rest }) => rest)

function expectGapless(alerts: readonly AlertRow[]): void {
  for (const tenantId of tenantIds) {
    const own = alerts.filter((alert) => alert.tenant_id === tenantId)
    const seqs = own.map((alert) => Number(alert.seq)).sort((a, b) => a - b)
    expect(seqs).toEqual(own.map((_, n) => n + 1))
  }
}

/** The number of messages in started batches. */
const begun = 'di_consume_messages_total'

describe('alerts', () => {
  let alone: AlertRow[]
  let decidedAlone: unknown[]

  beforeAll(async () => {
    for (const message of makeStream()) await rig.publishRaw(message)
    await rig.startScorer()
    await rig.drained()
    alone = await readAlerts()
    decidedAlone = await readDecisions()
  })

  it('of one scorer have every kind of finding', () => {
    expectGapless(alone)
    const codes = new Set(
      alone.flatMap((alert) =>
        (alert as unknown as { reasons: { code: string }[] }).reasons.map(({ code }) => code),
      ),
    )
    expect([...codes]).toEqual(
      expect.arrayContaining([
        'HIGH_VELOCITY',
        'MANY_USERS_PER_DEVICE',
        'MANY_DEVICES_PER_USER',
        'SESSION_REUSED',
        'PLATFORM_CHANGED',
        'SIGNAL_FLAPPING',
        'SCORE_MISMATCH',
        'IMPOSSIBLE_TRAVEL',
      ]),
    )
  })

  it('come with registrations, keys and replays', () => {
    const [, , ...others] = decidedAlone as unknown[][]
    expect(others.map((rows) => rows.length > 15)).toEqual([true, true, true])
  })

  it('are equal after full redelivery', async () => {
    await rig.redeliverAll()
    await rig.drained()
    expect(await readAlerts()).toEqual(alone)
    expect(await readDecisions()).toEqual(decidedAlone)
  })

  it('are equal from two concurrent scorers, with full redelivery meanwhile', async () => {
    await startOver()
    await Promise.all([rig.startScorer(), rig.startScorer()])
    await until('some alerts are raised', async () => (await readAlerts()).length > 20)
    await rig.redeliverAll()
    await rig.drained()
    const alerts = await readAlerts()
    expect(withoutSeq(alerts)).toEqual(withoutSeq(alone))
    expect(await readDecisions()).toEqual(decidedAlone)
    expectGapless(alerts)
  })

  it('are equal when of two scorers one is paused and the other killed', async () => {
    await startOver()
    const [paused, killed] = await Promise.all([rig.startScorer(), rig.startScorer()])
    const isBusy = async (scorer: ScorerProcess) => (await scorer.readMetric(begun)) > 0
    for (;;) {
      await until('both have messages in hand', async () => {
        if ((await isBusy(paused)) && (await isBusy(killed))) return true
        // One was ready so early that it has taken everything.
        if (await rig.isDrained()) await rig.redeliverAll()
        return false
      })
      await rig.killClickhouse()
      if (!(await rig.isDrained())) break
      // They ended just before.
      await rig.restartClickhouse()
      await rig.redeliverAll()
    }
    paused.child.kill('SIGSTOP')
    await killed.end('SIGKILL')
    await rig.restartClickhouse()
    await rig.startScorer()
    // The unacknowledged messages of both go to the third after the ack wait; then the first
    // resumes.
    await until('the third raises alerts', async () => (await readAlerts()).length > 20)
    paused.child.kill('SIGCONT')
    await rig.drained()
    const alerts = await readAlerts()
    expect(withoutSeq(alerts)).toEqual(withoutSeq(alone))
    expect(await readDecisions()).toEqual(decidedAlone)
    expectGapless(alerts)
  })
})
