/**
 * The types of the console's client, as `openapi-fetch` reads them: openapi-typescript makes them
 * of the admin API's document. Left out is what the client does not read, so that the file is short
 * enough for a review: texts, headers, answers other than successes, forms of an answer other than
 * the first, and members that are `never`.
 */
import { registerHooks } from 'node:module'
import { toKnownValues } from '#shared/io/http/open-enums.ts'
import { describeAdminApi } from '../support/http/describe-admin-api.ts'

type Json = Record<string, unknown>

// It needs the JavaScript API of TypeScript 5.
registerHooks({
  resolve: (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context),
})

const head =
  '/** Made from the admin API by `npm run generate`: change the API, not this file. */\n'

/** @returns the text of `services/console/web/api/schema.ts` */
export async function renderClientTypes(): Promise<string> {
  const { default: toTypes, astToString } = await import('openapi-typescript')
  const document = reduce(await describeAdminApi()) as Json
  const text = astToString(await toTypes(document as never, { emptyObjectsUnknown: true }))
  const lines = text.split('\n').filter((line) => !unreadLine.test(line))
  const kept = lines.join('\n').replaceAll(anyHeaders, '').replaceAll(noParameters, '')
  return head + kept.split('\n').map(wrapUnion).join('\n')
}

const unreadLine = /\?: never;$|^ *\/\*\* .* \*\/$/
const anyHeaders = /\n *headers: \{\n *\[name: string\]: unknown;\n *\};/g
const noParameters = /\n *parameters: \{\n *\};/g

/** Members of a schema or an operation that the types do not need. */
const unread = new Set(
  ['description', 'summary', 'title', 'example', 'examples', 'format', 'default', 'headers'].concat(
    ['operationId', 'tags', 'security'],
  ),
)
/** Members whose keys are names of the API's own. */
const named = new Set(['properties', 'paths', 'schemas', 'responses', 'content'])

function reduce(part: unknown, parent = ''): unknown {
  if (Array.isArray(part)) {
    // The client sends its headers itself.
    const isHeader = (one: unknown) => parent === 'parameters' && (one as Json).in === 'header'
    return part.filter((one) => !isHeader(one)).map((one) => reduce(one))
  }
  if (typeof part !== 'object' || part === null) return part
  const known = toKnownValues(part)
  if (known !== null) return reduce(known)
  return Object.fromEntries(
    Object.entries(part)
      .filter(([key]) => named.has(parent) || !unread.has(key))
      .filter(([key]) => parent !== 'responses' || key.startsWith('2'))
      .filter((_, at) => parent !== 'content' || at === 0)
      .map(([key, value]) => [key, reduce(value, named.has(parent) ? '' : key)]),
  )
}

const widthMax = 100

/** Each text of a long union on a line of its own. */
function wrapUnion(line: string): string {
  if (line.length <= widthMax) return line
  const indent = /^ */.exec(line)![0]
  return line.replaceAll(' | ', `\n${indent}    | `)
}
