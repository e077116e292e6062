/**
 * Identity: how well installs are recognised as on one phone, on simulated phones of which the
 * truth is known, by case, with strong identifiers and by traits alone, beside a plain reference.
 * `--phones 20000` takes fewer of them, `--seed 2` others, and `--plain` none of the fleets that are
 * made to be mistaken for one phone.
 */
import { parseArgs } from 'node:util'
import { learnedInstallsMax, phonesOfKeyMax } from '#shared/core/base/limits/entities.ts'
import { listKeys } from '#shared/core/identity/comparison.ts'
import {
  decideLink,
  findCandidates,
  type NewInstall,
  observeInstall,
} from '#shared/core/identity/decide-link.ts'
import type { ObservedInstall } from '#shared/core/identity/estimate-parameters.ts'
import { learnParameters } from '#shared/core/identity/learn-parameters.ts'
import { linkInstall, linkThresholds } from '#shared/core/identity/link-install.ts'
import { type IdentityParameters, toInitialParameters } from '#shared/core/identity/parameters.ts'
import { type Figure, publishReport, single } from '../report.ts'
import { toSpread } from '../spread.ts'
import { makeHardFleets } from './hard-fleets.ts'
import { createInstallSource } from './install-source.ts'
import { linkByReference } from './reference.ts'
import {
  type SimulatedFleet,
  type SimulatedInstall,
  simulateInstalls,
} from './simulated-installs.ts'

/** What became of an install. */
type Outcome = {
  install: SimulatedInstall
  cluster: string
  /** The likeliest phone and how likely, linked or not; null without a candidate. */
  best: { phones: ReadonlySet<number>; confidence: number } | null
  identifiersShared: boolean
}

const toNewInstall = ({ traits, atMs }: SimulatedInstall, at: number): NewInstall => ({
  tenantId: 'bench',
  deviceId: `install-${at}`,
  traits,
  streamOffset: at,
  receivedAtMs: atMs,
})

/** Whatever has a candidate is shown with its confidence. */
const allShown = { ...linkThresholds, possible: 0 }

/** Installs in their order, each decided as the scorer does, with what is known by then. */
function decideAll(
  installs: readonly SimulatedInstall[],
  parameters: IdentityParameters,
): Outcome[] {
  const source = createInstallSource()
  const truth = new Map<string, Set<number>>()
  return installs.map((install, at) => {
    const own = toNewInstall(install, at)
    const candidates = findCandidates(own.traits, source.facts)
    const known = [...candidates.phones.values()]
    const thresholds = { parameters, thresholds: allShown }
    const { link: shown } = linkInstall(own.traits, known, candidates.holdersOf, thresholds)
    // Before the install is on it.
    const best =
      shown === null
        ? null
        : { phones: new Set(truth.get(shown.phoneId)), confidence: shown.confidence }
    const link = decideLink(own, candidates, parameters)
    source.add(own, link)
    truth.set(link.phoneId, (truth.get(link.phoneId) ?? new Set()).add(install.phone))
    return { install, cluster: link.phoneId, best, identifiersShared: link.identifiersShared }
  })
}

/** Learns from the installs of the first third of the time, as the daily job does on two days. */
function learn({ phones, installs }: SimulatedFleet): IdentityParameters {
  const early = installs.slice(0, Math.floor(installs.length / 3))
  const isLearned = (at: number) =>
    Math.floor(((at + 1) * learnedInstallsMax) / early.length) >
      Math.floor((at * learnedInstallsMax) / early.length) || early.length <= learnedInstallsMax
  let parameters = toInitialParameters(phones)
  for (let day = 0; day < 2; day++) {
    const source = createInstallSource()
    const observed: ObservedInstall[] = []
    for (const [at, install] of early.entries()) {
      const own = toNewInstall(install, at)
      const candidates = findCandidates(own.traits, source.facts)
      if (isLearned(at)) {
        observed.push(observeInstall(own.traits, candidates, source.countPhones()))
      }
      source.add(own, decideLink(own, candidates, parameters))
    }
    parameters = learnParameters(parameters, observed, source.countPhones())
  }
  return parameters
}

/** Whether an identifier of this phone alone survived from one install to the other. */
const sharesIdentifier = (a: Outcome, b: Outcome): boolean => {
  const [own, other] = [a.install.traits.identifiers, b.install.traits.identifiers]
  return Object.entries(own).some(
    ([name, value]) => other[name] === value && !/^(constant|collides)/.test(value),
  )
}

/**
 * Of all pairs in one cluster, those of one phone; of its pairs that count, those in one cluster.
 */
function countPairs(outcomes: readonly Outcome[], counts: (a: Outcome, b: Outcome) => boolean) {
  const inCluster = toPairs(Map.groupBy(outcomes, ({ cluster }) => cluster))
  const ofPhone = toPairs(Map.groupBy(outcomes, ({ install }) => install.phone))
  const wanted = ofPhone.filter(([a, b]) => counts(a, b))
  return {
    precision: shareOf(inCluster, ([a, b]) => a.install.phone === b.install.phone),
    recall: shareOf(wanted, ([a, b]) => a.cluster === b.cluster),
  }
}

const toPairs = (groups: ReadonlyMap<unknown, readonly Outcome[]>): [Outcome, Outcome][] =>
  [...groups.values()].flatMap((some) =>
    some.flatMap((a, at) => some.slice(at + 1).map((b): [Outcome, Outcome] => [a, b])),
  )

const shareOf = <T>(all: readonly T[], is: (one: T) => boolean) =>
  all.filter(is).length / all.length

/** The recall of links at a precision, over every threshold. */
function recallAt(
  precision: number,
  links: readonly { score: number; isRight: boolean }[],
  returning: number,
): number {
  let [right, wrong, best] = [0, 0, 0]
  for (const { isRight } of links.toSorted((a, b) => b.score - a.score)) {
    if (isRight) right++
    else wrong++
    if (right / (right + wrong) >= precision) best = right / returning
  }
  return best
}

/** Stated against true certainty of the best candidates, by tenth of certainty. */
function toCalibration(outcomes: readonly Outcome[]) {
  return Array.from({ length: 10 }, (_, tenth) => {
    const own = outcomes.filter(
      ({ best }) => best !== null && Math.min(9, Math.floor(best.confidence * 10)) === tenth,
    )
    const isRight = ({ best, install }: Outcome) => best!.phones.has(install.phone)
    return {
      from: tenth / 10,
      stated: own.reduce((all, { best }) => all + best!.confidence, 0) / own.length,
      true: shareOf(own, isRight),
      of: own.length,
    }
  })
}

const withoutIdentifiers = ({ phones, installs }: SimulatedFleet): SimulatedFleet => ({
  phones,
  installs: installs.map((one) => ({ ...one, traits: { ...one.traits, identifiers: {} } })),
})

/** What became of each case: linked rightly, linked wrongly, alone. */
function printCases(title: string, outcomes: readonly Outcome[]): void {
  const seen = new Set<number>()
  const rows = new Map<string, { of: number; right: number; wrong: number; missed: number }>()
  const clusterOf = new Map<string, Set<number>>()
  for (const { install, cluster } of outcomes) {
    const own = rows.get(install.case) ?? { of: 0, right: 0, wrong: 0, missed: 0 }
    rows.set(install.case, own)
    const before = clusterOf.get(cluster) ?? new Set()
    own.of++
    if (before.size > 0 && !before.has(install.phone)) own.wrong++
    else if (before.has(install.phone)) own.right++
    else if (seen.has(install.phone)) own.missed++
    seen.add(install.phone)
    clusterOf.set(cluster, before.add(install.phone))
  }
  process.stdout.write(`\n${title}: installs, on their phone, on another's, not recognised\n`)
  for (const [name, { of, right, wrong, missed }] of rows) {
    process.stdout.write(`  ${name.padEnd(22)} ${[of, right, wrong, missed].join('  ')}\n`)
  }
}

const atLeast = (name: string, value: number, least: number): Figure => ({
  name,
  unit: '',
  value: toSpread([value]),
  bound: { of: 'value', atLeast: least },
})

const isOnOthers = ({ cluster, install }: Outcome, all: readonly Outcome[]): boolean =>
  all.some((one) => one.cluster === cluster && one.install.phone !== install.phone)

function measureStrong(fleet: SimulatedFleet): Figure[] {
  const outcomes = decideAll(fleet.installs, learn(fleet))
  printCases('with identifiers', outcomes)
  // The pairs of phones that have identifiers: of a shop's and of copiers the next figures tell.
  const own = outcomes.filter(({ install }) => install.case !== 'shop')
  const isCopied = ({ install }: Outcome) => install.case.startsWith('copied')
  const honest = own.filter((one) => !isCopied(one))
  const { precision, recall } = countPairs(honest, sharesIdentifier)
  process.stdout.write(`precision ${precision.toFixed(6)}, recall ${recall.toFixed(4)}\n`)
  const copied = own.filter(isCopied)
  const unnoticed = copied.filter(({ identifiersShared }) => !identifiersShared).length
  const sure = honest.filter(({ best }) => best !== null && best.confidence >= 0.99)
  const stated = sure.reduce((sum, { best }) => sum + best!.confidence, 0) / sure.length
  const right = shareOf(sure, ({ best, install }) => best!.phones.has(install.phone))
  const joined = outcomes.filter((one) => isCopied(one) && isOnOthers(one, outcomes)).length
  return [
    atLeast('pairwise precision with identifiers', precision, 0.9999),
    atLeast('pairwise recall with identifiers', recall, 0.995),
    single('installs with copied identifiers, not noticed', 'installs', unnoticed, 0),
    single('installs with copied identifiers on the phone of another', 'installs', joined, 0),
    single('stated beside true certainty of 0.99 and more', '', Math.max(0, stated - right), 0.01),
  ]
}

function measureTraits(fleet: SimulatedFleet): Figure[] {
  const { installs } = fleet
  const outcomes = decideAll(installs, learn(fleet))
  printCases('by traits alone', outcomes)
  const firsts = new Set(installs.map(({ phone }) => phone)).size
  const returning = installs.length - firsts
  const links = outcomes
    .filter(({ best }) => best !== null)
    .map(({ best, install }) => ({
      score: best!.confidence,
      isRight: best!.phones.has(install.phone),
    }))
  const reference = measureReference(installs)
  for (const precision of [0.9, 0.99, 0.999, 0.9999]) {
    const [own, plain] = [links, reference].map((some) => recallAt(precision, some, returning))
    process.stdout.write(
      `recall at precision ${precision}: ${own!.toFixed(4)}, reference ${plain!.toFixed(4)}\n`,
    )
  }
  const calibration = toCalibration(outcomes)
  for (const one of calibration) {
    process.stdout.write(
      `stated ${one.stated.toFixed(4)}, true ${one.true.toFixed(4)}, of ${one.of}\n`,
    )
  }
  const top = calibration.at(-1)!
  const shop = outcomes.filter(({ install }) => install.case === 'shop')
  const linkedInShop = shop.length - new Set(shop.map(({ cluster }) => cluster)).size
  const own = recallAt(0.999, links, returning)
  const plain = recallAt(0.999, reference, returning)
  return [
    {
      name: 'recall at precision 0.999, traits alone',
      unit: '',
      value: toSpread([own]),
      baseline: { name: 'reference', value: toSpread([plain]) },
      ratio: toSpread([own / plain]),
      bound: { of: 'ratio', atLeast: 1 },
    },
    single('stated beside true certainty above 0.9', '', Math.abs(top.stated - top.true), 0.01),
    single('equal phones of a shop that were linked', 'phones', linkedInShop, 0),
  ]
}

/** The reference compares with single installs that have a value in common, of few enough. */
function measureReference(installs: readonly SimulatedInstall[]) {
  const byKey = new Map<string, SimulatedInstall[]>()
  const candidates = installs.map((install) => {
    const shared = listKeys(install.traits).map(({ key }) => {
      const before = byKey.get(key) ?? []
      byKey.set(key, before)
      const found = before.length > phonesOfKeyMax ? [] : [...before]
      before.push(install)
      return found
    })
    return [...new Set(shared.flat())]
  })
  return linkByReference(installs, candidates).map(({ at, best, score }) => ({
    score,
    isRight: best.phone === installs[at]!.phone,
  }))
}

export function run(args: string[]): void {
  const { values } = parseArgs({
    args,
    options: {
      phones: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      plain: { type: 'boolean', default: false },
    },
  })
  const { phones, seed, plain: isPlain } = values
  const fleet = simulateInstalls(Number(phones), Number(seed), isPlain ? undefined : makeHardFleets)
  const plain = isPlain ? ' --plain' : ''
  publishReport({
    part: 'identity',
    command: `npm run bench -- identity --phones ${phones} --seed ${seed}${plain}`,
    versions: {},
    durability: 'in memory',
    figures: [...measureStrong(fleet), ...measureTraits(withoutIdentifiers(fleet))],
    checks: [
      {
        name: 'there are installs on known phones',
        ok: fleet.installs.length > fleet.phones,
        detail: `${fleet.installs.length} installs of ${fleet.phones} phones`,
      },
    ],
  })
}
