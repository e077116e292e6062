// The queue of cases under two signed-in analysts at the same time, over the whole HTTP app: each
// case is handed once, also those whose claim has run out, and what waits or is late is counted.
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#shared/core/base/seeded-random.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import type { Member, OperatorsRig } from '../../support/http/operators-rig.ts'
import { seed } from '../../support/process/seed.ts'

const casesMade = 500
const lateCases = 7
const hourMs = 3_600_000

/** Tests on the rig of the file that calls this. */
export function describeQueue(getRig: () => OperatorsRig): void {
  describe('two analysts on one queue', () => {
    it('get each of 500 cases once, and once more those whose claim ran out', async () => {
      const rig = getRig()
      const tenant_id = 'two-analysts'
      const { postgres, adminToken: token } = rig
      await rig.must(201, 'POST', '/tenants', { token, body: { tenant_id } })
      const raise = (from: number, to: number, atMs: number) =>
        raiseAlerts(
          postgres,
          Array.from({ length: to - from }, (_, n) =>
            makeAlertCandidate({
              tenantId: tenant_id,
              sessionId: `s${from + n}`,
              deviceId: `d${from + n}`,
              action: 'BLOCK',
            }),
          ),
          () => atMs,
        )
      // An alert of BLOCK is late after four hours.
      await raise(0, lateCases, Date.now() - 5 * hourMs)
      await raise(lateCases, casesMade, Date.now())
      const [ana, ben] = [await rig.join('analyst'), await rig.join('analyst')]
      const random = createSeededRandom(seed)
      const path = `/tenants/${tenant_id}/cases`
      const take = async ({ cookie }: Member): Promise<string | null> => {
        const { body } = await rig.must(200, 'POST', `${path}/next`, { cookie, body: {} })
        const { case: found } = body as unknown as { case: { case_id: string } | null }
        return found?.case_id ?? null
      }
      /** Both take cases until none is left, in turns that depend on the seed. */
      const takeAll = async () => {
        const taken: { by: Member; caseId: string }[] = []
        await Promise.all(
          [ana, ben].map(async (by) => {
            for (;;) {
              if (random() < 0.1) await new Promise((done) => setImmediate(done))
              const caseId = await take(by)
              if (caseId === null) return
              taken.push({ by, caseId })
            }
          }),
        )
        return taken
      }
      const first = await takeAll()
      expect(first).toHaveLength(casesMade)
      expect(new Set(first.map(({ caseId }) => caseId)).size).toBe(casesMade)
      expect(new Set(first.map(({ by }) => by.email)).size).toBe(2)

      const counts = async () =>
        (await rig.must(200, 'GET', `${path}/counts`, { cookie: ben.cookie })).body
      expect(await counts()).toMatchObject({ open: casesMade, snoozed: 0, breached: lateCases })
      const [asleep, judged] = first.map(({ caseId }) => caseId)
      const until = new Date(Date.now() + hourMs).toISOString()
      const change = { cookie: ana.cookie, body: { until } }
      await rig.must(200, 'PUT', `/cases/${asleep}/snooze`, change)
      const judgement = { cookie: ana.cookie, body: { disposition: 'CONFIRMED' } }
      await rig.must(200, 'POST', `/cases/${judged}/judgement`, judgement)
      expect(await counts()).toMatchObject({ open: casesMade - 2, snoozed: 1, closed: 1 })

      // Ana went home: what she has not settled is handed out again, to one of them.
      const { rows } = await postgres.query<{ case_id: string }>(
        `update cases set leased_until = now() where case_id in (
           select case_id from cases where tenant_id = $1 and leased_by = $2 limit 20)
         returning case_id`,
        [tenant_id, ana.email],
      )
      const again = (await takeAll()).map(({ caseId }) => caseId)
      expect(again.sort()).toEqual(rows.map(({ case_id: caseId }) => caseId).sort())
      expect(await take(ben)).toBeNull()
    })
  })
}
