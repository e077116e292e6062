/**
 * Policies as text: thresholds, caps and floors first, then the rules, then the largest weights.
 * Also the differences of two documents, by JSON path.
 */
import {
  listCategoryPolicies,
  type Policy,
  policySchema,
  type SignalWeight,
  type VelocityRule,
} from '#shared/core/policies/policy.ts'
import { isObject } from '#shared/core/telemetry/submission.ts'
import { toFields, toTable, toTime } from '../tables.ts'

/** Signals listed by weight; the document has all of them. */
const topWeights = 20
/** Changed paths that are listed; further ones are only counted. */
const diffLinesMax = 40

/**
 * @param document as stored, of this or an older release
 * @param nowMs decides which suppressions have ended
 */
export function toPolicyText(document: unknown, nowMs: number): string {
  const parsed = policySchema.safeParse(document)
  if (!parsed.success) return JSON.stringify(document, null, 2)
  const policy = parsed.data
  return [
    toFields(toSummary(policy)),
    toSection('FLOORS', toFloors(policy)),
    toSection('GROUPS', toGroups(policy)),
    toSection('RULES', toRules(policy)),
    ...toOptional(policy),
    toSection('SUPPRESSIONS', toSuppressions(policy, nowMs)),
    toSection(`TOP WEIGHTS (of ${toWeights(policy).length})`, toTopWeights(policy)),
  ].join('\n\n')
}

function toSection(title: string, text: string): string {
  const indented = text.split('\n').map((line) => `  ${line}`)
  return `${title}\n${indented.join('\n')}`
}

function toSummary(policy: Policy): Record<string, string> {
  const { thresholds, strongEvidence, softCategories, halving } = policy
  const caps = listCategoryPolicies(policy).map(({ category, cap }) => `${category} ${cap}`)
  return {
    thresholds: `review ${thresholds.review}, block ${thresholds.block}`,
    caps: caps.join(', '),
    ...(strongEvidence === null
      ? {}
      : { strong: `${strongEvidence.signals} critical signals of one category fill it` }),
    ...(softCategories.length === 0
      ? {}
      : { soft: `${softCategories.join(', ')}: their points never BLOCK by themselves` }),
    ...(halving.length === 0
      ? {}
      : {
          halving: halving
            .map(({ category, confirmedBy }) => `${category} by ${confirmedBy.join(', ')}`)
            .join('; '),
        }),
  }
}

function toFloors({ floors }: Policy): string {
  if (floors.length === 0) return 'none'
  return floors
    .map(({ score, signals, need, values = [], pastSoftLimit }) => {
      const as = values.length === 0 ? '' : ` as ${toList(values)}`
      const past = pastSoftLimit === true ? ', past the limit of soft categories' : ''
      return `${score} from ${need === 'all' ? 'all of ' : ''}${toList(signals)}${as}${past}`
    })
    .join('\n')
}

function toGroups(policy: Policy): string {
  const groups = listCategoryPolicies(policy).flatMap(({ category, groups = [] }) =>
    groups.map(({ cap, signals }) => `${category}: at most ${cap} from ${toList(signals)}`),
  )
  return groups.length === 0 ? 'none' : groups.join('\n')
}

/** With commas, in lines of at most about 90 columns. */
function toList(items: string[]): string {
  let text = ''
  let width = 0
  items.forEach((item, index) => {
    const end = index === items.length - 1 ? '' : ','
    if (width > 0 && width + item.length > 75) {
      text += '\n     '
      width = 0
    }
    text += ` ${item}${end}`
    width += item.length + 2
  })
  return text.trimStart()
}

function toRules(policy: Policy): string {
  const { velocity, correlationAloneMax, scoreMismatch, signalsMissing } = policy
  const rows = velocity.map((rule) => [
    rule.metric,
    `${toSpan(rule.windowSeconds)}`,
    `> ${rule.threshold}`,
    toRuleWeight(rule),
  ])
  if (scoreMismatch !== null) {
    const { threshold, weight } = scoreMismatch
    rows.push(['score_mismatch', '-', `> ${threshold}`, toRuleWeight({ weight })])
  }
  if (signalsMissing !== null) {
    const { threshold, weight } = signalsMissing
    rows.push(['signals_missing', '1d', `> ${threshold}`, toRuleWeight({ weight })])
  }
  if (rows.length === 0) return 'none'
  const most = `Alone, without signals of the event, at most ${correlationAloneMax}.`
  return `${toTable(['METRIC', 'WINDOW', 'ACTS', 'WEIGHT'], rows)}\n${most}`
}

/** As in `30, 45 from 10`. */
function toRuleWeight({ weight, steps = [] }: Pick<VelocityRule, 'weight' | 'steps'>): string {
  if (weight === 0) return 'off'
  return [weight, ...steps.map((step) => `${step.weight} from ${step.above + 1}`)].join(', ')
}

/** The members that a policy may leave out. */
function toOptional({ signals, trustedInstallers, requiredSignals }: Policy): string[] {
  const sections: string[] = []
  if (signals !== undefined) {
    const rows = Object.entries(signals).map(([path, { type, description = '' }]) => {
      return [path, type, description]
    })
    sections.push(toSection('DECLARED SIGNALS', toTable(['SIGNAL', 'TYPE', ''], rows)))
  }
  if (trustedInstallers !== undefined) {
    const { packages, silences = ['tamper.untrusted_install_source'] } = trustedInstallers
    const text = `${toList(packages)}\nsilence ${toList(silences)}`
    sections.push(toSection('TRUSTED INSTALLERS', text))
  }
  if (requiredSignals !== undefined) {
    const text = `${requiredSignals.weight} without any of ${toList(requiredSignals.signals)}`
    sections.push(toSection('REQUIRED SIGNALS', text))
  }
  return sections
}

function toSpan(seconds: number): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400}d`
  return seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${Math.round(seconds / 60)}m`
}

function toSuppressions({ suppressions }: Policy, nowMs: number): string {
  if (suppressions.length === 0) return 'none'
  return toTable(
    ['SIGNALS', 'SDK', 'PLATFORM', 'EXPIRES', 'REASON'],
    suppressions.map((one) => [
      one.signals.join(', '),
      one.sdkVersions?.join(', ') ?? 'all',
      one.platforms?.join(', ') ?? 'all',
      toExpiry(one.expiresAt, nowMs),
      one.reason,
    ]),
  )
}

function toExpiry(expiresAt: string | null, nowMs: number): string {
  if (expiresAt === null) return 'never'
  const ms = Date.parse(expiresAt)
  return `${toTime(new Date(ms).toISOString())}${ms <= nowMs ? ' (over)' : ''}`
}

type Weighed = { path: string; weight: number; how: string }

function toWeights(policy: Policy): Weighed[] {
  return listCategoryPolicies(policy)
    .flatMap(({ category, signals }) =>
      Object.entries(signals).map(([name, weight]) => ({
        path: `${category}.${name}`,
        ...toWeighed(weight),
      })),
    )
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || (a.path < b.path ? -1 : 1))
}

function toWeighed(weight: SignalWeight): { weight: number; how: string } {
  if (typeof weight === 'number') return { weight, how: '' }
  if ('whenFalse' in weight) return { weight: weight.whenFalse, how: 'when false' }
  if ('atLeast' in weight) return { weight: weight.weight, how: `from ${weight.atLeast}` }
  const values = Object.entries(weight.values)
  const how = values.map(([value, points]) => `${value} ${points}`).join(', ')
  return { weight: Math.max(0, ...values.map(([, points]) => points)), how }
}

function toTopWeights(policy: Policy): string {
  const rows = toWeights(policy)
    .slice(0, topWeights)
    .map(({ path, weight, how }) => [String(weight).padStart(3), path, how])
  return rows.length === 0 ? 'none' : toTable(['PTS', 'SIGNAL', ''], rows)
}

/** The differences of two documents, one per line: `$.thresholds.block: 75 -> 60`. */
export function toPolicyDiff(before: unknown, after: unknown): string {
  const lines: string[] = []
  compare(before, after, '$', lines)
  if (lines.length <= diffLinesMax) return lines.join('\n')
  const more = lines.length - diffLinesMax
  return [...lines.slice(0, diffLinesMax), `and ${more} more`].join('\n')
}

function compare(before: unknown, after: unknown, path: string, lines: string[]): void {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(before[key], after[key], `${path}.${key}`, lines)
    }
  } else if (isListOfObjects(before) && isListOfObjects(after)) {
    for (let index = 0; index < Math.max(before.length, after.length); index++) {
      compare(before[index], after[index], `${path}[${index}]`, lines)
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    lines.push(`${path}: ${toShort(before)} -> ${toShort(after)}`)
  }
}

const isListOfObjects = (value: unknown): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.every(isObject)

function toShort(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`
}
