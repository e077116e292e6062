/**
 * Generates random values that a JSON Schema allows, and changes that damage a value. It prefers
 * examples of a schema and values that exist on the server.
 */
import fc from 'fast-check'
import type { OpenapiDocument, Schema } from './operations.ts'

/** Values that exist on the server, by the name of the parameter or property that holds them. */
export type KnownValues = Record<string, readonly unknown[]>

const depthMax = 6

/** Any JSON with numbers that all parsers read equally. */
const anyJson: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 2 },
    fc.constantFrom(null, true, false, 0, 1, -1, 0.5, 2 ** 31),
    fc.string({ maxLength: 12 }),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), tie('value'), { maxKeys: 2 }),
  ),
})).value

/**
 * Values that a schema allows.
 * @param name of the parameter or property, for known values
 */
export function toArbitrary(
  schema: Schema,
  of: { document: OpenapiDocument; known: KnownValues },
  name = '',
  depth = 0,
): fc.Arbitrary<unknown> {
  const whole = resolve(schema, of.document)
  const byShape = toShape(whole, of, depth)
  const known = of.known[name]
  const examples = (whole.examples ?? (whole.example === undefined ? [] : [whole.example])) as
    | unknown[]
    | undefined
  const choices: fc.WeightedArbitrary<unknown>[] = [{ weight: 2, arbitrary: byShape }]
  if (known !== undefined && known.length > 0) {
    choices.push({ weight: 16, arbitrary: fc.constantFrom(...known) })
  } else if (examples !== undefined && examples.length > 0) {
    // An example of an object may be another tenant's, so it is rare.
    const weight = whole.type === 'object' ? 2 : 8
    choices.push({ weight, arbitrary: fc.constantFrom(...examples) })
  }
  return fc.oneof(...choices)
}

type Of = { document: OpenapiDocument; known: KnownValues }

function toShape(schema: Schema, of: Of, depth: number): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]))
  const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined
  if (options !== undefined) {
    return fc.oneof(...options.map((one) => toArbitrary(one, of, '', depth)))
  }
  if (Array.isArray(schema.type)) {
    return fc.oneof(
      ...(schema.type as string[]).map((type) => toShape({ ...schema, type }, of, depth)),
    )
  }
  switch (schema.type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer(toRange(schema, 1))
    case 'number':
      return fc.oneof(
        fc.integer(toRange(schema, 1)),
        fc.double({ noNaN: true, ...toRange(schema, 1e-6) }).filter((one) => !Object.is(one, -0)),
      )
    case 'string':
      return toText(schema)
    case 'array':
      return fc.array(toArbitrary((schema.items ?? {}) as Schema, of, '', depth + 1), {
        minLength: (schema.minItems as number | undefined) ?? 0,
        maxLength: Math.min((schema.maxItems as number | undefined) ?? 3, 5),
      })
    case 'object':
      return toObject(schema, of, depth)
    default:
      return anyJson
  }
}

function toObject(schema: Schema, of: Of, depth: number): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>)
  const required = new Set((schema.required ?? []) as string[])
  const parts = Object.fromEntries(
    properties.map(([key, one]) => [key, toArbitrary(one, of, key, depth + 1)]),
  )
  const named = fc.record(parts, { requiredKeys: [...required].filter((key) => key in parts) })
  const others = schema.additionalProperties
  if (others === false || others === undefined || depth > depthMax) return named
  const value =
    others === true || Object.keys(others as Schema).length === 0
      ? anyJson
      : toArbitrary(others as Schema, of)
  const key = fc.stringMatching(/^[a-z][a-z_]{0,12}$/)
  return fc
    .tuple(fc.dictionary(key, value, { maxKeys: 3 }), named)
    .map(([more, own]) => ({ ...more, ...own }))
}

function toText(schema: Schema): fc.Arbitrary<string> {
  const minLength = (schema.minLength as number | undefined) ?? 0
  const most = (schema.maxLength as number | undefined) ?? 40
  if (typeof schema.pattern === 'string' && schema.format === undefined) {
    return fc.stringMatching(new RegExp(schema.pattern)).filter((text) => text.length <= 2_048)
  }
  if (schema.format === 'date-time') {
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') })
      .map((date) => date.toISOString())
  }
  // Mostly printable ASCII, sometimes any Unicode and the full length.
  const bounds = { minLength, maxLength: Math.min(most, 40) }
  return fc.oneof(
    { weight: 6, arbitrary: fc.stringMatching(/^[A-Za-z0-9_.-]+$/).map(fit(bounds)) },
    { weight: 2, arbitrary: fc.string(bounds) },
    { weight: 1, arbitrary: fc.string({ ...bounds, unit: 'grapheme' }).map(fit(bounds)) },
    { weight: 1, arbitrary: fc.constant('x'.repeat(Math.min(most, 4_096))) },
  )
}

const fit =
  ({ minLength, maxLength }: { minLength: number; maxLength: number }) =>
  (text: string): string =>
    text.slice(0, maxLength).padEnd(minLength, 'x').toWellFormed()

function toRange(schema: Schema, step: number): { min: number; max: number } {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Record<
    string,
    number | undefined
  >
  const min = Math.max(minimum ?? -1_000, (exclusiveMinimum ?? -1_000_000) + step)
  const max = Math.min(maximum ?? min + 2_000, (exclusiveMaximum ?? Number.MAX_SAFE_INTEGER) - step)
  return { min, max: Math.max(min, max) }
}

/** Follows a reference and merges `allOf`. */
function resolve(schema: Schema, document: OpenapiDocument): Schema {
  if (typeof schema.$ref === 'string') {
    const parts = schema.$ref.replace(/^#\//, '').split('/')
    const found = parts.reduce<unknown>((at, part) => (at as Schema)[part], document)
    const { $ref: _, ...beside } = schema
    return resolve({ ...(found as Schema), ...beside }, document)
  }
  if (!Array.isArray(schema.allOf)) return schema
  const { allOf, ...own } = schema
  const merged: Schema & { properties: object; required: string[] } = {
    ...own,
    properties: (own.properties ?? {}) as object,
    required: (own.required ?? []) as string[],
  }
  for (const one of allOf as Schema[]) {
    const { properties, required, ...more } = resolve(one, document)
    Object.assign(merged, more)
    merged.properties = { ...merged.properties, ...(properties as object) }
    merged.required = [...merged.required, ...((required ?? []) as string[])]
  }
  return merged
}

/** Replacements for any value. */
export const oddValues: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e308, 2 ** 53, '', ' ', '\0', 'null'),
  fc.constantFrom<unknown>([], {}, [[]], [null], { a: 1 }, '\ud800', '😀', '../..', "' or 1=1 --"),
  fc.constant('x'.repeat(5_000)),
  fc.jsonValue({ maxDepth: 2 }),
)

/** A change at a random place: replaced, removed, or with one more key. */
export type Damage = { kind: 'replace' | 'remove' | 'add'; at: number; odd: unknown }

export const damages: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom('replace' as const, 'remove' as const, 'add' as const),
  at: fc.nat(1_000),
  odd: oddValues,
})

/** A damaged copy. `at` counts through all members of all objects and arrays. */
export function damage(value: unknown, { kind, at, odd }: Damage): unknown {
  const places: (readonly [holder: Record<string, unknown> | unknown[], key: string])[] = []
  const visit = (one: unknown): void => {
    if (typeof one !== 'object' || one === null) return
    for (const [key, inner] of Object.entries(one)) {
      places.push([one as Record<string, unknown>, key])
      visit(inner)
    }
  }
  const copy = structuredClone(value)
  visit(copy)
  const place = places[at % Math.max(1, places.length)]
  if (place === undefined || at % 17 === 0) return odd
  const [holder, key] = place
  if (Array.isArray(holder)) holder[Number(key)] = odd
  else if (kind === 'remove') delete holder[key]
  else if (kind === 'replace') holder[key] = odd
  else holder[`${key}_x`] = odd
  return copy
}
