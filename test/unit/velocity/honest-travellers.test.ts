// Honest users who travel, roam and use VPNs have no alarm of impossible travel; takeovers have one.
import { describe, expect, it } from 'vitest'
import {
  findImpossibleTravel,
  travelWindowMaxSeconds,
} from '#shared/core/velocity/impossible-travel.ts'
import {
  liveMonth,
  type NetworkKnowledge,
  silentGroups,
  type TravellerGroup,
} from '../../support/velocity/travelling-fleet.ts'

const users = Array.from({ length: 30 }, (_, user) => user)

/** The users who have an alarm. */
const findAlarmed = (group: TravellerGroup, knows: NetworkKnowledge): number[] =>
  users.filter((user) => {
    const rows = liveMonth(group, user, knows)
    const journeys = findImpossibleTravel(rows, travelWindowMaxSeconds, rows)
    return journeys.some((journey) => journey !== null)
  })

const knowledge = [
  ['cities', { cities: true, kinds: true }],
  ['countries', { cities: false, kinds: true }],
] as const

describe.each(knowledge)('with %s of addresses', (_, knows) => {
  it.each(silentGroups)('nobody has an alarm: %s', (group) => {
    expect(findAlarmed(group, knows)).toEqual([])
  })

  it('most takeovers from elsewhere have one', () => {
    const found = findAlarmed('account taken over, from a household elsewhere', knows)
    expect(found.length).toBeGreaterThan(users.length / 2)
  })
})

describe('without kinds of addresses', () => {
  it.each([
    'using a VPN now and then',
    'using a relay now and then',
    'abroad on hotel Wi-Fi, with the same phone roaming',
  ] as const)('the silence is that of the kinds: %s', (group) => {
    expect(findAlarmed(group, { cities: true, kinds: false }).length).toBeGreaterThan(0)
  })
})
