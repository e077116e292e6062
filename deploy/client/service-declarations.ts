/**
 * The types of `shared/client/service-types.ts`, written out: from the catalog of signals, the
 * flags and the REST API's document. So the package's types need no schema, and an editor shows
 * what each signal and each field means.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { actions } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { categories, type SignalDefinition } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { warningCodes } from '#shared/core/telemetry/signal-warnings.ts'
import { toKnownValues } from '#shared/io/http/open-enums.ts'

// It needs the JavaScript API of TypeScript 5.
registerHooks({
  resolve: (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context),
})

/** The answers of the REST API that the client's types name. */
const answers = {
  Alert: 'An alert, in a webhook and from `GET /v1/di/alerts`.',
  AlertPage: 'The answer of `GET /v1/di/alerts`.',
  Device: 'The answer of `GET /v1/di/devices/{device_id}`.',
}

/** @returns the text of a declaration file */
export async function renderServiceTypes(): Promise<string> {
  const names = Object.keys(answers) as (keyof typeof answers)[]
  return [
    declare('The authoritative action.', `type Action = ${toUnion(actions)}`),
    declare('A category of `signals`.', `type Category = ${toUnion(categories)}`),
    declare('The codes of reasons.', `type Flag = ${toUnion(flagCodes)}`),
    declare(
      'A warning in the answer of a sandbox tenant.',
      `type SignalWarning = {\n  path: string\n  code: ${toUnion(warningCodes)}\n  message: string\n  nearest: string | null\n}`,
    ),
    declare('The boolean signals as `category.signal`.', `type BooleanSignal = ${booleans()}`),
    declare('The known signals, by category.', `interface KnownSignals {\n${known()}}`),
    declare(
      'The known signals of a category. `null` and absence are "not measured".',
      'type CategorySignals<Name extends Category> = KnownSignals[Name]',
    ),
    ...names.map((name) =>
      declare(answers[name], `type ${name} = components["schemas"]["${name}"]`),
    ),
    await renderSchemas(names),
  ].join('\n')
}

const declare = (comment: string, text: string) => `/** ${comment} */\nexport ${text}\n`
const toUnion = (texts: readonly string[]) => texts.map((text) => `\n    | '${text}'`).join('')

const signalsOf = (category: (typeof categories)[number]) =>
  Object.entries<SignalDefinition>(signalCatalog[category])

function booleans(): string {
  const paths = categories.flatMap((category) =>
    signalsOf(category)
      .filter(([, { type }]) => type === 'boolean')
      .map(([name]) => `${category}.${name}`),
  )
  return toUnion(paths)
}

const valueTypes = { boolean: 'boolean', number: 'number', string: 'string', strings: 'string[]' }

function known(): string {
  const lines = categories.flatMap((category) => [
    `    ${category}: {`,
    ...signalsOf(category).flatMap(([name, { type, platforms, description }]) => [
      `        /** ${description} (${platforms.join(', ')}) */`,
      `        ${name}?: ${valueTypes[type]} | null;`,
    ]),
    '    };',
  ])
  return lines.map((line) => `${line}\n`).join('')
}

type Document = { components: { schemas: Record<string, unknown> } }

/** The schemas of these answers and those that they refer to. */
async function renderSchemas(names: readonly string[]): Promise<string> {
  const file = new URL('../../services/api/openapi/openapi.json', import.meta.url)
  const close = (_: string, part: unknown) => toKnownValues(part) ?? part
  const document = JSON.parse(readFileSync(file, 'utf8'), close) as Document
  const schemas: Record<string, unknown> = {}
  const take = (name: string) => {
    if (Object.hasOwn(schemas, name)) return
    const schema = document.components.schemas[name]
    schemas[name] = schema
    const references = JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g)
    for (const [, referred] of references) take(referred!)
  }
  for (const name of names) take(name)
  const { default: toTypes, astToString } = await import('openapi-typescript')
  const text = astToString(
    await toTypes({ ...document, paths: {}, webhooks: {}, components: { schemas } } as never),
  )
  const interfaces = text.slice(
    text.indexOf('export interface components'),
    text.indexOf('export type $defs'),
  )
  return interfaces.replaceAll('@description ', '')
}
