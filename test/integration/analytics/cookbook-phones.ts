// The questions of the cookbook about phones, with the answers that follow from the simulator's
// plan.
import { describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import type { HistoryEvent } from '../../support/analytics/history-alerts.ts'
import { makeLinks } from '../../support/analytics/history-phones.ts'
import type { LinkFact } from '../../support/identity/phone-links.ts'
import type { CookbookRig } from './cookbook-networks.ts'

const distinct = (values: readonly string[]) => new Set(values).size
const usersOf = ({ event: { body } }: HistoryEvent) =>
  [body.user_id, body.account_id].filter((one) => one !== undefined)
const phoneOf = ({ tenantId, deviceId, firstDeviceId = deviceId }: LinkFact) =>
  toPhoneId(tenantId, firstDeviceId)
const byPhone = (a: { phone_id: string }, b: { phone_id: string }) =>
  a.phone_id < b.phone_id ? -1 : 1
const toMs = (text: unknown) => Date.parse(`${String(text).replace(' ', 'T')}Z`)

export function describePhones({ answer, findHistory }: CookbookRig): void {
  const phones = () => [...Map.groupBy(makeLinks(findHistory().events), phoneOf)]
  const eventsOf = (links: readonly LinkFact[]) => {
    const ids = new Set(links.map(({ deviceId }) => deviceId))
    return findHistory().events.filter(({ event }) => ids.has(event.body.device_id))
  }

  describe('a question about phones', () => {
    it('finds the installs that came after a block of their phone', async () => {
      const { rows } = await answer('reinstalls-after-a-block')
      const blockedMs = new Map<string, number>()
      for (const { action, deviceId, createdAtMs } of findHistory().alerts) {
        if (action !== 'BLOCK') continue
        blockedMs.set(deviceId, Math.min(createdAtMs, blockedMs.get(deviceId) ?? createdAtMs))
      }
      const expected = phones()
        .flatMap(([phoneId, links]) => {
          const blocked = links.filter(({ deviceId }) => blockedMs.has(deviceId))
          const first = Math.min(...blocked.map(({ deviceId }) => blockedMs.get(deviceId)!))
          const since = links.filter(({ atMs }) => atMs > first)
          if (blocked.length === 0 || since.length === 0) return []
          return {
            phone_id: phoneId,
            blocked_device_id: blocked.find(({ deviceId }) => blockedMs.get(deviceId) === first)!
              .deviceId,
            installs_since: since.length,
            blocked_since: since.filter(({ deviceId }) => blockedMs.has(deviceId)).length,
            users_since: distinct(eventsOf(since).flatMap(usersOf)),
          }
        })
        .sort((a, b) => b.installs_since - a.installs_since || byPhone(a, b))
      expect(expected.length).toBeGreaterThan(3)
      expect(rows).toMatchObject(expected)
      expect(rows).toHaveLength(expected.length)
    })

    it('ranks phones by their installs', async () => {
      const { rows } = await answer('phones-with-most-installs')
      const expected = phones()
        .filter(([, links]) => links.length >= 3)
        .map(([phoneId, links]) => ({
          phone_id: phoneId,
          installs: links.length,
          days: Number(((links.at(-1)!.atMs - links[0]!.atMs) / dayMs).toFixed(1)),
          users_seen: distinct(eventsOf(links).flatMap(usersOf)),
          risk_score: Math.max(...eventsOf(links).map(({ event }) => event.rasp_score)),
        }))
        .sort((a, b) => b.installs - a.installs || byPhone(a, b))
      expect(expected.length).toBeGreaterThan(10)
      expect(rows.map(({ days: _, ...row }) => row)).toMatchObject(
        expected.map(({ days: _, ...row }) => row),
      )
      for (const [at, { days }] of expected.entries()) {
        expect(Math.abs(Number(rows[at]!.days) - days)).toBeLessThanOrEqual(0.1)
      }
    })

    it('finds phones on which several accounts began, over several installs', async () => {
      const { rows } = await answer('bonus-abuse-by-phone')
      const first = new Map<string, HistoryEvent['event']>()
      for (const one of findHistory().events) {
        const { device_id: deviceId } = one.event.body
        for (const user of usersOf(one)) {
          if (isPlaceholderId(user) || isPlaceholderId(deviceId) || first.has(user)) continue
          first.set(user, one.event)
        }
      }
      const expected = phones()
        .map(([phoneId, links]) => {
          const ids = new Set(links.map(({ deviceId }) => deviceId))
          const began = [...first].filter(([, { body }]) => ids.has(body.device_id))
          const times = began.map(([, event]) => event.received_at)
          return {
            phone_id: phoneId,
            new_accounts: began.length,
            installs: distinct(began.map(([, { body }]) => body.device_id)),
            firstMs: Math.min(...times),
            lastMs: Math.max(...times),
          }
        })
        .filter((one) => one.new_accounts >= 3 && one.installs >= 2)
        .sort((a, b) => b.new_accounts - a.new_accounts || byPhone(a, b))
      expect(expected.length).toBeGreaterThan(3)
      const found = rows.map(({ accounts: _, first_account_at, last_account_at, ...row }) => ({
        ...row,
        firstMs: toMs(first_account_at),
        lastMs: toMs(last_account_at),
      }))
      expect(found).toEqual(expected)
    })
  })
}
