// Phones over HTTP, as the service decided and analysts corrected: installs, users and alerts of
// one, and the phone of a device, a user's devices and an event.
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { alertSchema } from '#shared/core/alerts/alert-schema.ts'
import { phoneInstallsShownMax } from '#shared/core/base/limits/entities.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { toPhoneSchema } from '#shared/core/identity/phone-schemas.ts'
import { searchIds } from '#shared/io/alerts/search-store.ts'
import { createLinkStore } from '#shared/io/devices/link-store.ts'
import {
  type CorrectionView,
  correctPhone,
  listCorrections,
  removeUndoneCorrections,
  undoCorrection,
} from '#shared/io/identity/correct-phone.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type ApiRig, acceptEvent } from '../../support/http/api-rig.ts'
import { insertLinks, type LinkFact } from '../../support/identity/phone-links.ts'
import { seed } from '../../support/process/seed.ts'

const phoneSchema = toPhoneSchema(alertSchema).strict()
const startMs = Date.parse('2026-09-01T00:00:00.000Z')

/** Tests on the databases of the file that calls this. */
export function describePhones(getRig: () => ApiRig): void {
  let rig: ApiRig
  let key: string
  let store: ReturnType<typeof createPhoneStore>
  const tenantId = 'phones'
  const evidence = [{ field: 'identifier media_drm_id', level: 1, weight: 9.5, holders: 1 }]

  const idOf = (deviceId: string, of = tenantId) => toPhoneId(of, deviceId)
  const findPhone = (phoneId: string, by = key) => rig.call(`/v1/di/phones/${phoneId}`, { key: by })
  const readPhone = async (phoneId: string) => {
    const answer = await findPhone(phoneId)
    expect(answer.status).toBe(200)
    return phoneSchema.parse(answer.json())
  }

  /** Events and decisions of some installs, a minute apart. */
  async function addInstalls(facts: readonly Omit<LinkFact, 'atMs'>[], users: string[] = []) {
    const timed = facts.map((fact, at) => ({ ...fact, atMs: startMs + at * 60_000 }))
    await rig.telemetry.insertTelemetry(
      timed.map((fact, at) => {
        const userId = users[at]
        return acceptEvent({
          tenantId: fact.tenantId,
          deviceId: fact.deviceId,
          atMs: fact.atMs,
          sessionId: `s-${fact.deviceId}`,
          score: 10 + Math.min(at, 50),
          ...(userId === undefined ? {} : { userId }),
        })
      }),
    )
    await insertLinks(rig.clickhouse, timed)
  }

  async function correct(
    deviceId: string,
    to: string | null,
    more: { of?: string; expected?: string } = {},
  ): Promise<CorrectionView> {
    const { of = tenantId, expected } = more
    const phoneId = to === null ? null : idOf(to, of)
    const link = await store.findDecidedLink({ tenantId: of, deviceId })
    return correctPhone(rig.postgres, {
      tenantId: of,
      deviceId,
      phoneId,
      reason: 'seen in the shop',
      actor: 'ada@example.com',
      expectedPhoneId: expected,
      decided: {
        phoneId: link!.phoneId,
        targetInstalls:
          phoneId === null ? 0 : await store.countDecidedInstalls({ tenantId: of, phoneId }),
      },
    })
  }
  const undo = ({ correction_id: correctionId }: CorrectionView, of = tenantId) =>
    undoCorrection(rig.postgres, { tenantId: of, correctionId, actor: 'ben@example.com' })

  beforeAll(async () => {
    rig = getRig()
    key = await rig.addTenant(tenantId)
    store = createPhoneStore(rig.clickhouse, createPhoneCorrections(rig.postgres))
  })

  describe('a phone', () => {
    beforeAll(async () => {
      await addInstalls(
        [
          { tenantId, deviceId: 'first/1' },
          { tenantId, deviceId: 'again', firstDeviceId: 'first/1', confidence: 0.995, evidence },
          { tenantId, deviceId: 'maybe', possibleDeviceId: 'first/1', confidence: 0.85 },
          { tenantId, deviceId: 'without' },
        ],
        ['anna', 'ben', 'carl', 'unknown'],
      )
      const candidate = makeAlertCandidate({ tenantId, deviceId: 'again', sessionId: 's-again' })
      await rig.alerts.raiseAlerts([candidate], Date.now)
    })

    test('has its installs, users and alerts; what is merely possible is on none', async () => {
      const phone = await readPhone(idOf('first/1'))
      expect(phone).toMatchObject({
        first_seen_at: new Date(startMs).toISOString(),
        last_seen_at: new Date(startMs + 60_000).toISOString(),
        risk_score: 11,
        installs_total: 2,
        users_total: 2,
        alerts_total: 1,
      })
      expect(phone.installs).toMatchObject([
        {
          device_id: 'again',
          link: 'linked',
          confidence: 0.995,
          evidence,
          possible_phone_id: null,
        },
        { device_id: 'first/1', link: 'first', confidence: 1, evidence: [] },
      ])
      expect(phone.users).toMatchObject([
        { user_id: 'ben', installs: 1 },
        { user_id: 'anna', installs: 1 },
      ])
      expect(phone.alerts.map((alert) => alert.entity.device.device_id)).toEqual(['again'])
      const maybe = await readPhone(idOf('maybe'))
      expect(maybe.installs).toMatchObject([
        {
          device_id: 'maybe',
          link: 'possible',
          confidence: 0.15,
          possible_phone_id: idOf('first/1'),
          possible_confidence: 0.85,
        },
      ])
      expect((await readPhone(idOf('without'))).users).toEqual([])
    })

    test('is found by its id or the beginning of it, also where only a correction made it', async () => {
      const links = createLinkStore(rig.clickhouse)
      const search = async (text: string, tenantIds = [tenantId]) => [
        (await links.findByText({ tenantIds, text, limit: 10 })).filter(
          (one) => one.kind === 'phone',
        ),
        (await searchIds(rig.postgres, { text, scope: tenantIds, limit: 10 })).filter(
          (one) => one.kind === 'phone',
        ),
      ]
      const known = { kind: 'phone', tenantId, id: idOf('first/1') }
      expect(await search(known.id)).toEqual([[known], []])
      expect(await search(known.id.slice(0, 12))).toEqual([[known], []])
      expect(await search(known.id, ['phones-other'])).toEqual([[], []])
      const split = await correct('again', null)
      const own = { kind: 'phone', tenantId, id: split.phone_id }
      expect(await search(own.id.slice(0, 12))).toEqual([[], [own]])
      expect(await search(own.id, ['phones-other'])).toEqual([[], []])
      await undo(split)
      expect(await search(own.id)).toEqual([[], []])
    })

    test('of another tenant, an unknown one and a malformed id tell nothing', async () => {
      const otherKey = await rig.addTenant('phones-other')
      const bodies = []
      for (const [phoneId, by] of [
        [idOf('first/1'), otherKey],
        [idOf('nobody'), key],
      ] as const) {
        const answer = await findPhone(phoneId, by)
        expect(answer.status).toBe(404)
        bodies.push({ ...answer.json(), request_id: '' })
      }
      expect(bodies[0]).toEqual(bodies[1])
      expect(bodies[0]).toMatchObject({ code: 'phone_not_found' })
      for (const phoneId of [
        'first',
        'phn_',
        `phn_${'a'.repeat(23)}`,
        'phn_%00aaaaaaaaaaaaaaaaaaaaa',
      ]) {
        const answer = await findPhone(phoneId)
        expect(answer.json()).toMatchObject({ status: 400, code: 'invalid_path' })
      }
    })

    test('is named by its devices, their users and events; null where nothing was decided', async () => {
      await rig.telemetry.insertTelemetry([
        acceptEvent({ tenantId, deviceId: 'silent', sessionId: 's', atMs: startMs, userId: 'ben' }),
      ])
      const phone = { phone_id: idOf('first/1'), confidence: 0.995, installs: 2 }
      const read = async (path: string) => (await rig.call(`/v1/di/${path}`, { key })).json()
      expect(await read('devices/again')).toMatchObject({ phone })
      expect(await read('devices/silent')).toMatchObject({ phone: null })
      expect(await read('devices/maybe')).toMatchObject({
        phone: { phone_id: idOf('maybe'), confidence: 0.15, installs: 1 },
      })
      expect(await read('users/ben')).toMatchObject({
        devices: [
          { device_id: 'again', phone },
          { device_id: 'silent', phone: null },
        ],
      })
      const listed = await read('events?device_id=again')
      const [event] = (listed as { data: { event_id: string }[] }).data
      expect(event).toMatchObject({ phone })
      expect(await read(`events/${event!.event_id}`)).toMatchObject({ phone })
    })
  })

  describe('a correction', () => {
    const facts = (prefix: string) => [
      { tenantId, deviceId: `${prefix}-1` },
      { tenantId, deviceId: `${prefix}-2`, firstDeviceId: `${prefix}-1`, confidence: 0.992 },
      { tenantId, deviceId: `${prefix}-3` },
    ]
    const installsOf = async (deviceId: string) => {
      const phone = await store.readPhone({ tenantId, phoneId: idOf(deviceId) })
      return phone?.installs.map((one) => one.deviceId).sort() ?? []
    }
    const phoneOf = async (deviceId: string) =>
      (await store.findPhonesOfDevices({ tenantId, deviceIds: [deviceId] })).get(deviceId)

    test('splits, joins and is undone in turn, each with its audit entry and without the id', async () => {
      await addInstalls(facts('turn'))
      const split = await correct('turn-2', null)
      expect(split).toMatchObject({ kind: 'split', in_force: true, from_phone_id: idOf('turn-1') })
      expect([await installsOf('turn-1'), await installsOf('turn-2')]).toEqual([
        ['turn-1'],
        ['turn-2'],
      ])
      expect(await phoneOf('turn-1')).toEqual({
        phoneId: idOf('turn-1'),
        confidence: 1,
        installs: 1,
      })
      const join = await correct('turn-2', 'turn-3')
      expect(await phoneOf('turn-2')).toEqual({
        phoneId: idOf('turn-3'),
        confidence: 1,
        installs: 2,
      })
      await expect(undo(split)).rejects.toMatchObject({ code: 'conflict' })
      await undo(join)
      expect((await phoneOf('turn-2'))!.phoneId).toBe(idOf('turn-2'))
      await expect(undo(join)).rejects.toMatchObject({ code: 'conflict' })
      await undo(split)
      expect(await phoneOf('turn-2')).toEqual({
        phoneId: idOf('turn-1'),
        confidence: 0.992,
        installs: 2,
      })
      const listed = await listCorrections(rig.postgres, {
        tenantId,
        phoneId: idOf('turn-1'),
        deviceIds: ['turn-1', 'turn-2'],
      })
      expect(listed.map((one) => [one.kind, one.in_force, one.undone_by])).toEqual([
        ['join', false, 'ben@example.com'],
        ['split', false, 'ben@example.com'],
      ])
      const audit = await listAudit(rig.postgres, { tenantId, limit: 4 })
      expect(audit.map(({ action, actor }) => [action, actor])).toEqual([
        ['phone.correction_undone', 'ben@example.com'],
        ['phone.correction_undone', 'ben@example.com'],
        ['phone.joined', 'ada@example.com'],
        ['phone.split', 'ada@example.com'],
      ])
      expect(JSON.stringify(audit)).not.toContain('turn-2')
    })

    test('counts from its time until it is undone, for what is received then', async () => {
      await addInstalls(facts('time'))
      const join = await correct('time-3', 'time-1')
      const undone = await undo(join)
      const { findCorrections } = createPhoneCorrections(rig.postgres)
      const at = async (atMs: number) =>
        (await findCorrections(tenantId, ['time-3', 'time-1'], atMs)).get('time-3')?.phoneId
      const [from, to] = [Date.parse(join.at), Date.parse(undone.undone_at!)]
      expect(await at(from)).toBeUndefined()
      expect(await at(from + 1)).toBe(idOf('time-1'))
      expect(await at(to)).toBe(idOf('time-1'))
      expect(await at(to + 1)).toBeUndefined()
      expect(await findCorrections('phones-other', ['time-3'], from + 1)).toEqual(new Map())
    })

    test('is refused where it changes nothing, of another tenant, or against an unseen change', async () => {
      await addInstalls(facts('not'))
      await expect(correct('not-1', null)).rejects.toMatchObject({ code: 'conflict' })
      await expect(correct('not-2', 'not-1')).rejects.toMatchObject({ code: 'conflict' })
      await expect(correct('not-2', 'nobody')).rejects.toMatchObject({ code: 'phone_not_found' })
      const tenant = 'phones-elsewhere'
      await rig.addTenant(tenant)
      await addInstalls([{ tenantId: tenant, deviceId: 'theirs' }])
      // A phone of another tenant is none.
      const join = correctPhone(rig.postgres, {
        tenantId,
        deviceId: 'not-2',
        phoneId: idOf('theirs', tenant),
        reason: 'x',
        actor: 'a',
        decided: {
          phoneId: idOf('not-1'),
          targetInstalls: await store.countDecidedInstalls({
            tenantId,
            phoneId: idOf('theirs', tenant),
          }),
        },
      })
      await expect(join).rejects.toMatchObject({ code: 'phone_not_found' })
      const split = await correct('not-2', null)
      await expect(correct('not-2', 'not-3', { expected: idOf('not-1') })).rejects.toMatchObject({
        code: 'phone_changed',
      })
      await expect(undo(split, tenant)).rejects.toMatchObject({
        code: 'phone_correction_not_found',
      })
      expect((await phoneOf('not-2'))!.phoneId).toBe(idOf('not-2'))
    })

    test('fills no phone beyond its bound, also of many at once', async () => {
      const many = Array.from({ length: phoneInstallsShownMax - 1 }, (_, at) => `big-${at}`)
      await addInstalls([
        ...many.map((deviceId) => ({ tenantId, deviceId, firstDeviceId: 'big-0' })),
        ...['own-1', 'own-2', 'own-3'].map((deviceId) => ({ tenantId, deviceId })),
      ])
      const phoneId = idOf('big-0')
      const targetInstalls = await store.countDecidedInstalls({ tenantId, phoneId })
      // Each has a connection of its own that is open already, so they meet.
      await Promise.all(Array.from({ length: 6 }, () => rig.postgres.query('select pg_sleep(0.1)')))
      const joins = await Promise.allSettled(
        ['own-1', 'own-2', 'own-3'].map((deviceId) =>
          correctPhone(rig.postgres, {
            tenantId,
            deviceId,
            phoneId,
            reason: 'seen in the shop',
            actor: 'ada@example.com',
            decided: { phoneId: idOf(deviceId), targetInstalls },
          }),
        ),
      )
      expect(joins.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect((await readPhone(idOf('big-0'))).installs_total).toBe(phoneInstallsShownMax)
      const [first] = joins.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
      await undo(first!)
      await expect(correct('big-7', null)).resolves.toMatchObject({ kind: 'split' })
      expect((await readPhone(idOf('big-0'))).installs_total).toBe(phoneInstallsShownMax - 2)
    })

    test('leaves every install on one phone, whose counts agree, over random corrections', async () => {
      const devices = ['m-0', 'm-1', 'm-2', 'm-3', 'm-4', 'm-5']
      const firsts = ['m-0', 'm-0', 'm-0', 'm-3', 'm-3', 'm-5']
      let run = 0
      const step = fc.record({
        device: fc.nat(devices.length - 1),
        to: fc.option(fc.nat(devices.length - 1)),
        undo: fc.boolean(),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
          const of = `phones-model-${run++}`
          await rig.addTenant(of)
          await addInstalls(
            devices.map((deviceId, at) => ({ tenantId: of, deviceId, firstDeviceId: firsts[at]! })),
          )
          // What each was on before, latest last; the first is what the service decided.
          const stacks = devices.map((_, at) => [
            { on: firsts[at]!, made: null as CorrectionView | null },
          ])
          for (const { device, to, undo: isUndo } of steps) {
            const stack = stacks[device]!
            if (isUndo) {
              const { made } = stack.at(-1)!
              if (made !== null) {
                await undo(made, of)
                stack.pop()
              }
              continue
            }
            const on = to === null ? devices[device]! : devices[to]!
            const isThere = to === null || stacks.some((one) => one.at(-1)!.on === on)
            const made = await correct(devices[device]!, to === null ? null : on, { of }).catch(
              (error) => error.code as string,
            )
            if (on === stack.at(-1)!.on) expect(made).toBe('conflict')
            else if (!isThere) expect(made).toBe('phone_not_found')
            else stack.push({ on, made: made as CorrectionView })
          }
          const present = stacks.map((stack) => stack.at(-1)!.on)
          const found = await store.findPhonesOfDevices({ tenantId: of, deviceIds: devices })
          for (const [at, deviceId] of devices.entries()) {
            const phoneId = idOf(present[at]!, of)
            const installs = present.filter((on) => on === present[at]).length
            expect(found.get(deviceId)).toMatchObject({ phoneId, installs })
            const phone = await store.readPhone({ tenantId: of, phoneId })
            expect(phone!.installs.map((one) => one.deviceId).sort()).toEqual(
              devices.filter((_, other) => present[other] === present[at]),
            )
            expect(phone!.installsTotal).toBe(installs)
          }
        }),
        { seed, numRuns: 8 },
      )
    })

    test('that was undone long ago is removed, and no other', async () => {
      await addInstalls(facts('old'))
      await correct('old-2', null)
      await undo(await correct('old-3', 'old-1'))
      const count = async () =>
        (
          await rig.postgres.query<{ count: number }>(
            'select count(*) as count from phone_corrections where device_id = any($1)',
            [['old-2', 'old-3']],
          )
        ).rows[0]!.count
      await removeUndoneCorrections(rig.postgres, Date.now(), 1_000)
      expect(await count()).toBe(2)
      await removeUndoneCorrections(rig.postgres, Date.now() + 401 * 86_400_000, 1_000)
      expect(await count()).toBe(1)
    })
  })
}
