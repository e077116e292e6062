// What a statement says, read from the engine's own rendering of it: without comments, heredocs
// and escapes, a name is there as it is. The engine in this process may read any file of the
// machine by a function that no grant covers, so functions that reach outside are refused by name.

import type { AskedQuery, Refusal } from './analyst-request.ts'

/** Files, other programs and machines, the log, the engine's own configuration. */
const forbiddenFunctions = [
  'aiClassify',
  'aiEmbed',
  'aiExtract',
  'aiGenerate',
  'aiTranslate',
  'catboostEvaluate',
  'evalMLMethod',
  'file',
  'generateSerialID',
  'getMacro',
  'getServerSetting',
  'logTrace',
  'showCertificate',
]
const forbidden = new RegExp(`\\b(${forbiddenFunctions.join('|')})\\b`, 'i')
const renderedString = /'(?:[^'\\]|\\.|'')*'/gs
const plainName = /^[\w.-]*$/

/** The statement that asks the engine for its rendering of another. */
export function toRenderingStatement(query: string): string {
  const quoted = query.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
  return `select formatQuerySingleLine('${quoted}') format RawBLOB`
}

/**
 * Judges a statement by its rendering. A name can also come from a parameter.
 * @returns null when nothing speaks against it
 */
export function judgeRendering(
  rendering: string,
  parameters: AskedQuery['parameters'],
): Refusal | null {
  const found = forbidden.exec(rendering.replace(renderedString, "''"))
  if (found !== null) return denied(found[1]!)
  if (!/:\s*Identifier\b/.test(rendering)) return null
  for (const [name, value] of parameters) {
    if (!name.startsWith('param_')) continue
    if (!plainName.test(value) || forbidden.test(value)) return denied(value)
  }
  return null
}

const denied = (name: string): Refusal => ({
  status: 403,
  code: 497,
  name: 'ACCESS_DENIED',
  text: `analyst: Not enough privileges to use the name ${name}`,
})
