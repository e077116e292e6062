/**
 * Identity: how well installs are recognised as on one phone, on simulated phones of which the truth
 * is known, by case, with strong identifiers and by traits alone, beside a plain reference.
 * `--phones 20000` takes fewer of them; `--seed 2` others.
 */
import { parseArgs } from 'node:util'
import {
  estimateParameters,
  type ObservedInstall,
} from '#shared/core/identity/estimate-parameters.ts'
import { linkInstall, linkThresholds } from '#shared/core/identity/link-install.ts'
import { type IdentityParameters, toInitialParameters } from '#shared/core/identity/parameters.ts'
import { type Figure, publishReport, single } from '../report.ts'
import { toSpread } from '../spread.ts'
import { createPhoneIndex } from './phone-index.ts'
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
  best: { phones: Set<number>; confidence: number } | null
  identifiersShared: boolean
}

type Run = {
  outcomes: Outcome[]
  observed: ObservedInstall[]
  index: ReturnType<typeof createPhoneIndex>
}

/** Installs in their order, each decided with what is known by then. */
function decideAll(installs: readonly SimulatedInstall[], parameters: IdentityParameters): Run {
  const index = createPhoneIndex()
  const truth = new Map<string, Set<number>>()
  const observed: ObservedInstall[] = []
  const outcomes = installs.map((install, at) => {
    const { traits } = install
    const candidates = index.findCandidates(traits)
    observed.push(index.observe(traits))
    const thresholds = { ...linkThresholds, possible: 0 }
    const decision = linkInstall(traits, candidates, index.holdersOf, { parameters, thresholds })
    const { link, identifiersShared, kept } = decision
    const cluster = link?.kind === 'linked' ? link.phoneId : `phone-${at}`
    const best =
      link === null
        ? null
        : { phones: new Set(truth.get(link.phoneId)), confidence: link.confidence }
    const isPossible = link !== null && link.confidence >= linkThresholds.possible
    index.add(cluster, kept, isPossible ? link : null)
    truth.set(cluster, (truth.get(cluster) ?? new Set()).add(install.phone))
    return { install, cluster, best, identifiersShared }
  })
  return { outcomes, observed, index }
}

/** Learns from the installs of the first third of the time, as a daily job would. */
function learn({ phones, installs }: SimulatedFleet): IdentityParameters {
  const early = installs.slice(0, Math.floor(installs.length / 3))
  let parameters = toInitialParameters(phones)
  for (let day = 0; day < 2; day++) {
    const { observed, index } = decideAll(early, parameters)
    parameters = estimateParameters(parameters, observed, index.phones.size)
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

/** Of all pairs in one cluster, those of one phone; of its pairs that count, those in one cluster. */
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

function measureStrong(fleet: SimulatedFleet): Figure[] {
  const { outcomes } = decideAll(fleet.installs, learn(fleet))
  printCases('with identifiers', outcomes)
  // The pairs of phones that have identifiers: of a shop's and of copiers the next figures tell.
  const own = outcomes.filter(({ install }) => install.case !== 'shop')
  const honest = own.filter(({ install }) => install.case !== 'copied identifiers')
  const { precision, recall } = countPairs(honest, sharesIdentifier)
  process.stdout.write(`precision ${precision.toFixed(6)}, recall ${recall.toFixed(4)}\n`)
  const copied = own.filter(({ install }) => install.case === 'copied identifiers')
  const merged = copied.filter(({ identifiersShared }) => !identifiersShared).length
  return [
    atLeast('pairwise precision with identifiers', precision, 0.9999),
    atLeast('pairwise recall with identifiers', recall, 0.995),
    single('phones with the identifiers of two others, not noticed', 'phones', merged, 0),
  ]
}

function measureTraits(fleet: SimulatedFleet): Figure[] {
  const { installs } = fleet
  const { outcomes } = decideAll(installs, learn(fleet))
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

function measureReference(installs: readonly SimulatedInstall[]) {
  const index = createPhoneIndex()
  const byId = new Map<string, SimulatedInstall>()
  const candidates = installs.map(({ traits }, at) => {
    const found = index.findCandidates(traits).map(({ phoneId }) => byId.get(phoneId)!)
    index.add(`${at}`, traits, null)
    byId.set(`${at}`, installs[at]!)
    return found
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
    },
  })
  const fleet = simulateInstalls(Number(values.phones), Number(values.seed))
  publishReport({
    part: 'identity',
    command: `npm run bench -- identity --phones ${values.phones} --seed ${values.seed}`,
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
