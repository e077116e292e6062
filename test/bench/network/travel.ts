/**
 * `npm run bench -- travel [--users 500]`: how many users of a month have an alarm of impossible
 * travel, by what they do: honest ones who travel, roam or use a VPN, and accounts that were taken
 * over. Each with cities and kinds of addresses, beside network data that knows cities alone, and
 * with countries in place of cities.
 */
import { parseArgs } from 'node:util'
import {
  findImpossibleTravel,
  travelWindowMaxSeconds,
} from '#shared/core/velocity/impossible-travel.ts'
import {
  liveMonth,
  type NetworkKnowledge,
  silentGroups,
  type TravellerGroup,
  travellerGroups,
} from '../../support/velocity/travelling-fleet.ts'
import { type Figure, publishReport } from '../report.ts'
import { toSpread } from '../spread.ts'

/** @returns the share of users with an alarm, in percent */
function countAlarmed(group: TravellerGroup, users: number, knows: NetworkKnowledge): number {
  let alarmed = 0
  for (let user = 0; user < users; user++) {
    const rows = liveMonth(group, user, knows)
    const journeys = findImpossibleTravel(rows, travelWindowMaxSeconds, rows)
    if (journeys.some((journey) => journey !== null)) alarmed++
  }
  return (100 * alarmed) / users
}

export function run(args: string[] = []): void {
  const { values } = parseArgs({ args, options: { users: { type: 'string', default: '500' } } })
  const users = Number(values.users)
  const groups = Object.keys(travellerGroups) as TravellerGroup[]
  const figures = groups.flatMap((group): Figure[] => {
    const shareOf = (knows: NetworkKnowledge) => toSpread([countAlarmed(group, users, knows)])
    const bound = silentGroups.includes(group) ? { of: 'value' as const, atMost: 0 } : undefined
    return [
      {
        name: group,
        unit: '% of users',
        value: shareOf({ cities: true, kinds: true }),
        baseline: { name: 'without kinds', value: shareOf({ cities: true, kinds: false }) },
        ...(bound === undefined ? {} : { bound }),
      },
      {
        name: `${group}, countries alone`,
        unit: '% of users',
        value: shareOf({ cities: false, kinds: true }),
        baseline: { name: 'without kinds', value: shareOf({ cities: false, kinds: false }) },
        ...(bound === undefined ? {} : { bound }),
      },
    ]
  })
  publishReport({
    part: 'travel',
    command: `npm run bench -- travel --users ${users}`,
    versions: {},
    durability: 'nothing is stored',
    figures,
    checks: [],
  })
}
