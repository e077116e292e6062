/**
 * A plain reference: Fellegi and Sunter with every trait as a field of its own, equal or not, and
 * the same u-probability for all values of a field; m by expectation and maximization.
 */
import { bootToleranceMs } from '#shared/core/base/limits/identity.ts'
import type { SimulatedInstall } from './simulated-installs.ts'

type Pair = { agrees: (boolean | null)[] }

const singles = [
  ...(['model', 'build', 'osVersion', 'storage', 'memory', 'screen'] as const),
  ...(['locale', 'zone', 'carrier'] as const),
]

function compare(a: SimulatedInstall, b: SimulatedInstall): Pair {
  const [own, other] = [a.traits, b.traits]
  const [user, otherUser] = [own.users[0], other.users[0]]
  return {
    agrees: [
      ...singles.map((name) => a.singles[name] === b.singles[name]),
      own.network === other.network,
      user === undefined || otherUser === undefined ? null : user === otherUser,
      Math.abs(own.bootAtMs! - other.bootAtMs!) <= bootToleranceMs,
    ],
  }
}

/**
 * @param candidatesOf the earlier installs that an install is compared with
 * @returns for each install with a candidate the best one and the log-odds of being on its phone
 */
export function linkByReference(
  installs: readonly SimulatedInstall[],
  candidatesOf: readonly (readonly SimulatedInstall[])[],
): { at: number; best: SimulatedInstall; score: number }[] {
  const pairs = candidatesOf.map((some, at) => some.map((one) => compare(installs[at]!, one)))
  const weights = estimate(installs, pairs.flat())
  return pairs.flatMap((some, at) => {
    let [best, score] = [null as SimulatedInstall | null, Number.NEGATIVE_INFINITY]
    for (const [index, { agrees }] of some.entries()) {
      const sum = agrees.reduce((all, is, field) => all + toPoints(weights[field]!, is), 0)
      if (sum > score) [best, score] = [candidatesOf[at]![index]!, sum]
    }
    return best === null ? [] : [{ at, best, score }]
  })
}

type Weights = { agree: number; differ: number }
const toPoints = ({ agree, differ }: Weights, is: boolean | null) =>
  is === null ? 0 : is ? agree : differ

function estimate(installs: readonly SimulatedInstall[], pairs: readonly Pair[]): Weights[] {
  const fields = pairs[0]!.agrees.length
  // Of random pairs of installs, which are of different phones.
  const u = Array.from({ length: fields }, () => 0.5)
  let random = 0
  for (let at = 0; at + 7_919 < installs.length; at++) {
    const { agrees } = compare(installs[at]!, installs[at + 7_919]!)
    random++
    for (const [field, is] of agrees.entries()) if (is === true) u[field]!++
  }
  const uShares = u.map((count) => Math.min(0.99, count / (random + 1)))
  let m = Array.from({ length: fields }, () => 0.9)
  let matching = 0.3
  for (let round = 0; round < 15; round++) {
    const agreed = m.map(() => 0.5)
    const known = m.map(() => 1)
    let sum = 0
    for (const { agrees } of pairs) {
      let logOdds = Math.log(matching / (1 - matching))
      for (const [field, is] of agrees.entries()) {
        if (is === null) continue
        const [same, other] = [m[field]!, uShares[field]!]
        logOdds += is ? Math.log(same / other) : Math.log((1 - same) / (1 - other))
      }
      const certainty = 1 / (1 + Math.exp(-logOdds))
      sum += certainty
      for (const [field, is] of agrees.entries()) {
        if (is === null) continue
        known[field]! += certainty
        if (is) agreed[field]! += certainty
      }
    }
    m = agreed.map((count, field) => Math.min(0.999, count / known[field]!))
    matching = Math.min(0.99, sum / pairs.length)
  }
  return m.map((same, field) => ({
    agree: Math.log(same / uShares[field]!),
    differ: Math.log((1 - same) / (1 - uShares[field]!)),
  }))
}
