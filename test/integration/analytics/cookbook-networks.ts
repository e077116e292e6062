// The questions of the cookbook about networks and countries, with the answers that follow from the
// simulator's plan.
import { describe, expect, it } from 'vitest'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import type { Answer } from '../../support/analytics/cookbook.ts'
import { historyEndMs } from '../../support/analytics/cookbook-span.ts'
import type { FleetHistory } from '../../support/analytics/fleet-history.ts'
import type { HistoryAlert, HistoryEvent } from '../../support/analytics/history-alerts.ts'

type Measured = HistoryEvent & { connection: EventConnection }

export type CookbookRig = {
  answer: (name: string, given?: Record<string, string>) => Promise<Answer>
  /** Once it is planned. */
  findHistory: () => FleetHistory
}

const distinct = (values: readonly string[]) => new Set(values).size
const deviceOf = ({ event }: HistoryEvent) => event.body.device_id
const personOf = ({ event: { body } }: HistoryEvent) => body.user_id ?? body.account_id ?? ''
const share = (some: number, all: number) => Number((some / all).toFixed(3))
const isOver = ({ connection: { kinds = [] } }: Measured, some: readonly string[]) =>
  kinds.some((kind) => some.includes(kind))

const measuredOf = ({ events }: FleetHistory): Measured[] =>
  events.flatMap((one) =>
    one.event.connection === undefined ? [] : [{ ...one, connection: one.event.connection }],
  )

export function describeNetworks({ answer, findHistory }: CookbookRig): void {
  const measured = () => measuredOf(findHistory())
  /** Alerts with where their event came from; those of an unmeasured one are left out. */
  const measuredAlerts = (): { alert: HistoryAlert; connection: EventConnection }[] => {
    const byId = new Map(measured().map((one) => [one.event.event_id, one.connection]))
    return findHistory().alerts.flatMap((alert) => {
      const connection = byId.get(alert.eventId)
      return connection === undefined ? [] : [{ alert, connection }]
    })
  }

  describe('a question about networks', () => {
    it('counts the countries of blocked users, and all users of each', async () => {
      const { rows } = await answer('countries-of-blocked-users')
      const blocks = measuredAlerts().filter(
        ({ alert }) => alert.action === 'BLOCK' && alert.userId !== '',
      )
      const expected = [...Map.groupBy(blocks, ({ connection }) => connection.country!)]
        .map(([country, some]) => {
          const seen = measured().filter((one) => one.connection.country === country)
          const users = distinct(seen.map(personOf).filter((person) => person !== ''))
          const blocked = distinct(some.map(({ alert }) => alert.userId))
          return {
            country,
            blocked_users: blocked,
            users,
            share: share(blocked, users),
            blocks: some.length,
          }
        })
        .sort((a, b) => b.blocked_users - a.blocked_users || (a.country < b.country ? -1 : 1))
      expect(expected.length).toBeGreaterThan(2)
      expect(rows).toEqual(expected)
    })

    it('ranks the networks of data centres by their alerts', async () => {
      const { rows } = await answer('hosting-networks-by-alerts')
      const hosted = measuredAlerts().filter(({ connection }) =>
        connection.kinds?.includes('hosting'),
      )
      const expected = [...Map.groupBy(hosted, ({ connection }) => connection.network)]
        .map(([network, some]) => {
          const alerts = some.map(({ alert }) => alert)
          const judged = (to: string) => alerts.filter((one) => one.disposition === to).length
          return {
            network,
            asn: 64_496,
            organization: 'Example Hosting Ltd',
            country: 'NL',
            alerts: alerts.length,
            blocks: alerts.filter(({ action }) => action === 'BLOCK').length,
            devices: distinct(alerts.map((one) => one.deviceId)),
            users: distinct(alerts.map((one) => one.userId).filter((id) => id !== '')),
            confirmed: judged('CONFIRMED'),
            false_positives: judged('FALSE_POSITIVE'),
          }
        })
        .sort((a, b) => b.alerts - a.alerts || (a.network < b.network ? -1 : 1))
      expect(expected.length).toBeGreaterThan(1)
      expect(rows).toEqual(expected)
    })

    it('finds the networks of farms, and none of people', async () => {
      const placeless = ({ detected }: Measured) =>
        detected.filter((path) => !/^(network|ecosystem)/.test(path))
      const alike = Map.groupBy(
        measured().filter((one) => one.detected.length >= 4 && placeless(one).length >= 4),
        (one) => {
          const { platform, sdk_version: version } = one.event.body.sdk_meta
          return JSON.stringify([one.connection.network, platform, version, placeless(one)])
        },
      )
      const sizes = [...alike].map(([key, some]) => [key, some] as const)
      const largest = Math.max(...sizes.map(([, some]) => distinct(some.map(deviceOf))))
      const least = Math.max(2, Math.ceil(largest / 2))
      const { rows } = await answer('networks-of-farms', { devices_min: String(least) })
      const farms = sizes.filter(([, some]) => distinct(some.map(deviceOf)) >= least)
      const shown = rows.map((row) => [
        JSON.stringify([row.network, row.platform, row.sdk_version, row.findings]),
        row.devices,
      ])
      const expected = farms.map(([key, some]) => [key, distinct(some.map(deviceOf))])
      expect(expected.length).toBeGreaterThan(0)
      expect(shown.sort()).toEqual(expected.sort())
      for (const [, some] of farms) {
        expect(new Set(some.map(({ phone }) => phone.kind.name))).toEqual(
          new Set(['emulator-farm']),
        )
      }
    })

    it('finds the users who were in two countries within hours', async () => {
      const { rows } = await answer('users-in-two-countries', { hours: '6' })
      const placed = measured().filter(
        (one) =>
          personOf(one) !== '' &&
          !isOver(one, ['vpn', 'proxy', 'relay', 'tor', 'hosting']) &&
          one.connection.country !== undefined,
      )
      const expected = [...Map.groupBy(placed, personOf)].flatMap(([person, some]) => {
        const ordered = some.sort(
          (a, b) =>
            a.event.received_at - b.event.received_at ||
            (a.event.event_id < b.event.event_id ? -1 : 1),
        )
        const changes = ordered.flatMap((one, at) => {
          const before = ordered[at - 1]
          if (before === undefined || before.connection.country === one.connection.country) {
            return []
          }
          const apart = one.event.received_at - before.event.received_at
          return apart < 6 * hourMs ? [[before, one] as const] : []
        })
        if (changes.length === 0) return []
        const countries = changes.flat().map(({ connection }) => connection.country!)
        return [
          [
            person,
            changes.length,
            [...new Set(countries)].sort(),
            distinct(changes.map(([, one]) => deviceOf(one))),
          ],
        ]
      })
      expect(expected.length).toBeGreaterThan(1)
      const shown = rows.map((row) => [row.person, row.changes, row.countries, row.devices])
      expect(shown.sort()).toEqual(expected.sort())
      const counts = rows.map((row) => Number(row.changes))
      expect(counts).toEqual([...counts].sort((a, b) => b - a))
    })

    it('compares the VPNs that the network shows with those that the SDK reports', async () => {
      const { rows } = await answer('vpn-share-by-version')
      const byVersion = Map.groupBy(measured(), ({ event: { body } }) =>
        [body.sdk_meta.platform, body.sdk_meta.sdk_version].join(' '),
      )
      const expected = [...byVersion].map(([version, some]) => {
        const count = (test: (one: Measured) => boolean) =>
          distinct(some.filter(test).map(deviceOf))
        const isVpn = (one: Measured) => isOver(one, ['vpn', 'relay'])
        const isReported = ({ detected }: Measured) => detected.includes('network.vpn_active')
        const [all, over] = [count(() => true), count(isVpn)]
        const both = count((one) => isVpn(one) && isReported(one))
        return [version, all, over, count(isReported), both, share(over, all)]
      })
      expect(expected.some(([, , over, reported]) => over! > reported!)).toBe(true)
      const shown = rows.map((row) => [
        `${row.platform} ${row.sdk_version}`,
        ...[row.devices, row.over_vpn, row.reported, row.both, row.share],
      ])
      expect(shown.sort()).toEqual(expected.sort())
    })

    it('finds the networks of the last week, with the devices that are new', async () => {
      const { rows } = await answer('new-networks')
      const sinceMs = historyEndMs - 7 * dayMs
      const firstMs = (some: readonly HistoryEvent[]) =>
        Math.min(...some.map(({ event }) => event.received_at))
      const firsts = new Map(
        [...Map.groupBy(findHistory().events, deviceOf)].map(([id, some]) => [id, firstMs(some)]),
      )
      const expected = [...Map.groupBy(measured(), ({ connection }) => connection.network)]
        .filter(([, some]) => firstMs(some) >= sinceMs)
        .map(([network, some]) => {
          const devices = [...new Set(some.map(deviceOf))]
          const fresh = devices.filter((id) => firsts.get(id)! >= sinceMs)
          return [network, devices.length, fresh.length]
        })
      expect(expected.length).toBeGreaterThan(1)
      const shown = rows.map((row) => [row.network, row.devices, row.new_devices])
      expect(shown.sort()).toEqual(expected.sort())
    })
  })
}
