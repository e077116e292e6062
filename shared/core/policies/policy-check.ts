/**
 * Checks a policy document that an operator writes. The check is stricter than the schema of stored
 * ones: every name must be in the catalog, every weight must fit its signal's type, and no rule may
 * contradict another. It reports all errors at once, by JSON path.
 */
import { z } from 'zod'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import {
  type Category,
  categories,
  isServerCategory,
  type SignalCategory,
  type SignalDefinition,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog, signalCatalog } from '#shared/core/signals/signals.ts'
import { travelWindowMaxSeconds } from '#shared/core/velocity/impossible-travel.ts'
import { newDeviceMs } from '#shared/core/velocity/new-device.ts'
import { type Declaring, findScoredSignal, type ScoredSignal } from './declared-signals.ts'
import {
  type CategoryPolicy,
  halvingSchema,
  listCategoryPolicies,
  type Policy,
  policySchema,
  type SignalWeight,
  weightForms,
} from './policy.ts'

type CheckedPolicy = { ok: true; policy: Policy } | { ok: false; errors: ProblemDetail[] }

/** Most errors that one answer lists. */
const faultsListedMax = 100

/**
 * Checks a policy document before it is set.
 * @param document parsed JSON of any shape
 * @returns the policy to store, or every error with its JSON path
 */
export function checkPolicy(document: unknown): CheckedPolicy {
  const parsed = policySchema.safeParse(document, { error: describeFault })
  const errors = parsed.success
    ? checkContents(parsed.data)
    : parsed.error.issues.flatMap((issue) => describeIssue(issue, document))
  if (parsed.success && errors.length === 0) return { ok: true, policy: parsed.data }
  return { ok: false, errors: errors.slice(0, faultsListedMax) }
}

type Key = PropertyKey

function toPath(keys: readonly Key[]): string {
  return keys.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
    '$',
  )
}

function describeIssue(issue: z.core.$ZodIssue, document: unknown): ProblemDetail[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: toPath([...issue.path, key]),
      message: 'is not known here',
    }))
  }
  if (issue.code === 'invalid_union') {
    // The key determines the form, so the errors of that form are more precise than the union's.
    const value = findValue(document, issue.path)
    const form = Object.entries(weightForms).find(([key]) => isObject(value) && key in value)
    const parsed = form?.[1].safeParse(value, { error: describeFault })
    if (parsed?.error !== undefined) {
      return parsed.error.issues.flatMap((one) =>
        describeIssue({ ...one, path: [...issue.path, ...one.path] }, document),
      )
    }
  }
  return [{ path: toPath(issue.path), message: issue.message }]
}

function findValue(document: unknown, path: readonly Key[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key as string] : undefined),
    document,
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function checkContents(policy: Policy): ProblemDetail[] {
  const errors: ProblemDetail[] = []
  const fault = (path: string, message: string) => errors.push({ path, message })
  const { review, block } = policy.thresholds
  if (block <= review) fault('$.thresholds', 'block must be above review')
  checkDeclared(policy, fault)
  for (const own of listCategoryPolicies(policy)) {
    checkWeights(own, policy, fault)
    checkGroups(own, policy, fault)
  }
  policy.floors.forEach(({ signals, need }, index) => {
    checkPaths(signals, policy, { at: `$.floors[${index}].signals`, fault })
    if (need !== 'all' || new Set(signals).size > 1) return
    fault(`$.floors[${index}].signals`, 'needs two signals or more for `all`')
  })
  checkHalving(policy, fault)
  policy.suppressions.forEach((suppression, index) => {
    const path = `$.suppressions[${index}]`
    checkPaths(suppression.signals, policy, { at: `${path}.signals`, fault })
    checkVersions(suppression.sdkVersions ?? [], `${path}.sdkVersions`, fault)
  })
  const { trustedInstallers, requiredSignals } = policy
  const silenced = trustedInstallers?.silences ?? []
  checkPaths(silenced, policy, { at: '$.trustedInstallers.silences', fault })
  checkRequired(requiredSignals?.signals ?? [], policy, fault)
  checkVelocity(policy.velocity, fault)
  return errors
}

type Fault = (path: string, message: string) => void

function checkDeclared({ signals = {} }: Policy, fault: Fault): void {
  for (const path of Object.keys(signals)) {
    const [category, name] = path.split('.') as [Category, string]
    if (!Object.hasOwn(signalCatalog, category)) {
      fault(`$.signals.${path}`, `is in no category: ${categories.join(', ')}`)
    } else if (findScoredSignal({}, category, name) !== undefined) {
      fault(`$.signals.${path}`, 'is in the catalog already')
    }
  }
}

function checkVelocity(rules: Policy['velocity'], fault: Fault): void {
  const seen = new Set<string>()
  rules.forEach(({ metric, windowSeconds, threshold, weight, steps = [] }, index) => {
    const path = `$.velocity[${index}]`
    const key = `${metric}:${windowSeconds}`
    if (seen.has(key)) fault(path, 'repeats the metric and window of another')
    seen.add(key)
    if (metric === 'new_device_of_user') {
      if (threshold > 0) fault(`${path}.threshold`, 'must be 0: the count is 0 or 1')
      if (windowSeconds * 1000 <= newDeviceMs) {
        fault(`${path}.windowSeconds`, 'must be more than a day, for which a device is new')
      }
    }
    if (metric === 'impossible_travel') {
      if (threshold > 0) fault(`${path}.threshold`, 'must be 0: the count is 0 or 1')
      if (windowSeconds > travelWindowMaxSeconds) {
        fault(`${path}.windowSeconds`, 'must be at most a day, in which anybody gets anywhere')
      }
    }
    let before = { above: threshold, weight }
    steps.forEach((step, at) => {
      if (step.above <= before.above) {
        fault(`${path}.steps[${at}].above`, `must be more than ${before.above}`)
      }
      if (step.weight <= before.weight) {
        fault(`${path}.steps[${at}].weight`, `must be more than ${before.weight}`)
      }
      before = step
    })
  })
}

type NamedCategory = CategoryPolicy & { category: SignalCategory }

/** Where a document has the weights of a category. */
const toCategoryPath = (category: SignalCategory): string =>
  `$.${isServerCategory(category) ? 'serverCategories' : 'categories'}.${category}`

function checkWeights({ category, signals }: NamedCategory, policy: Policy, fault: Fault): void {
  for (const [name, weight] of Object.entries(signals)) {
    const path = `${toCategoryPath(category)}.signals.${name}`
    const definition = findScoredSignal(policy, category, name)
    if (definition === undefined) fault(path, `is not a known signal of ${category}`)
    // 0 is "no weight" of any type.
    else if (weight !== 0 && !fits(weight, definition)) {
      fault(path, `weighs a ${typeNames[definition.type]}: must be ${formNames[definition.type]}`)
    }
  }
}

const typeNames = {
  boolean: 'boolean',
  number: 'number',
  string: 'text',
  strings: 'list of texts',
} as const satisfies Record<SignalDefinition['type'], string>

const formNames = {
  boolean: 'a number or {"whenFalse"}',
  number: '{"atLeast","weight"} or 0',
  string: '{"values"} or 0',
  strings: '{"values"} or 0',
} as const satisfies Record<SignalDefinition['type'], string>

function fits(weight: SignalWeight, { type }: ScoredSignal): boolean {
  if (typeof weight === 'number' || 'whenFalse' in weight) return type === 'boolean'
  if ('atLeast' in weight) return type === 'number'
  return type === 'string' || type === 'strings'
}

function checkGroups({ category, groups = [] }: NamedCategory, policy: Policy, fault: Fault): void {
  const seen = new Set<string>()
  groups.forEach(({ signals }, index) => {
    signals.forEach((name, at) => {
      const path = `${toCategoryPath(category)}.groups[${index}].signals[${at}]`
      if (findScoredSignal(policy, category, name) === undefined) {
        fault(path, `is not a known signal of ${category}: ${name}`)
      }
      if (seen.has(name)) fault(path, `is in a group already: ${name}`)
      seen.add(name)
    })
  })
}

/** Checks paths like `category.signal`, and `category.*` where the schema allows it. */
function checkPaths(
  paths: readonly string[],
  policy: Declaring,
  { at, fault }: { at: string; fault: Fault },
): void {
  paths.forEach((path, index) => {
    if (!isKnownPath(path, policy)) fault(`${at}[${index}]`, `is not a known signal: ${path}`)
  })
}

/** What a client must measure it must be able to send. */
function checkRequired(paths: readonly string[], policy: Declaring, fault: Fault): void {
  const at = '$.requiredSignals.signals'
  checkPaths(paths, policy, { at, fault })
  paths.forEach((path, index) => {
    if (isServerCategory(path.split('.')[0]!)) {
      fault(`${at}[${index}]`, `is not sent by clients: weigh it in serverCategories: ${path}`)
    }
  })
}

function isKnownPath(path: string, policy: Declaring): boolean {
  const [category = '', name = ''] = path.split('.')
  if (!Object.hasOwn(fullCatalog, category)) return false
  return name === '*' || findScoredSignal(policy, category as SignalCategory, name) !== undefined
}

function checkHalving(policy: Policy, fault: Fault): void {
  const seen = new Set<Category>()
  policy.halving.forEach(({ category, confirmedBy }, index) => {
    checkPaths(confirmedBy, policy, { at: `$.halving[${index}].confirmedBy`, fault })
    if (seen.has(category)) fault(`$.halving[${index}]`, `halves ${category} a second time`)
    seen.add(category)
  })
}

function checkVersions(versions: readonly string[], at: string, fault: Fault): void {
  versions.forEach((version, index) => {
    if (version.replace(/\.\*$/, '').includes('*')) {
      fault(`${at}[${index}]`, 'may have a * only at its end, after a dot')
    }
  })
}

type JsonSchema = z.core.JSONSchema.BaseSchema

/**
 * The JSON Schema of a policy document, for editors and other languages. It lists every signal of
 * the catalog with the weights that fit its type. It cannot express all checks of `checkPolicy`,
 * such as two rules for one metric and window.
 */
export function toPolicyJsonSchema(): JsonSchema {
  const schema: JsonSchema = z.toJSONSchema(policySchema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema, path }) => {
      // Older forms of halving are accepted, but not offered.
      if (path.join('.') === 'properties.halving') {
        const { $schema: _, ...list } = z.toJSONSchema(halvingSchema, { io: 'input' })
        Object.assign(jsonSchema, list)
      }
    },
  })
  const describe = (member: 'categories' | 'serverCategories', category: SignalCategory) => {
    const own = propertyOf(propertyOf(schema, member), category)
    describeSignals(propertyOf(own, 'signals'), category)
  }
  for (const category of categories) describe('categories', category)
  for (const category of serverCategories) describe('serverCategories', category)
  return {
    ...schema,
    title: 'Policy',
    $defs: weightSchemas(),
  }
}

function propertyOf(schema: JsonSchema, name: string): JsonSchema {
  const { [name]: property } = schema.properties ?? {}
  return property as JsonSchema
}

/** Adds the signals of the catalog to "any name, any weight", which fits declared signals. */
function describeSignals(signals: JsonSchema, category: SignalCategory): void {
  delete signals.propertyNames
  const definitions: [string, SignalDefinition][] = Object.entries(fullCatalog[category])
  signals.properties = Object.fromEntries(
    definitions.map(([name, { type, grade, description }]) => [
      name,
      { description: `${description} Grade: ${grade}.`, $ref: `#/$defs/${type}` },
    ]),
  )
}

/** The weights that a signal of each type can have. */
function weightSchemas(): Record<SignalDefinition['type'], JsonSchema> {
  const form = (schema: z.ZodType): JsonSchema => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' })
    return rest
  }
  const points = { type: 'integer', minimum: 0, maximum: 100 } as const
  const none = { const: 0, description: 'Context that never scores.' }
  const text = { anyOf: [form(weightForms.values), none] }
  return {
    boolean: {
      anyOf: [
        { ...points, description: 'The points of `true`; 0 is context that never scores.' },
        form(weightForms.whenFalse),
      ],
    },
    number: { anyOf: [form(weightForms.atLeast), none] },
    string: text,
    strings: text,
  }
}
