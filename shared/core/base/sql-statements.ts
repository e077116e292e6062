/**
 * Splits a SQL file into its statements, for servers that accept one statement at a time.
 * Semicolons in strings, quoted names and comments do not end a statement.
 */

/** Strings, quoted names and comments, in which a semicolon has no meaning. */
const opaque = /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\//y

/**
 * Splits the text of a SQL file.
 * @param text statements that end in semicolons; optional after the last
 * @returns the statements with their comments and without semicolons; none of comments only
 */
export function splitStatements(text: string): string[] {
  const statements: string[] = []
  let start = 0
  let meaningful = false
  const end = (at: number) => {
    if (meaningful) statements.push(text.slice(start, at).trim())
    start = at + 1
    meaningful = false
  }
  for (let at = 0; at < text.length; ) {
    opaque.lastIndex = at
    const skipped = opaque.exec(text)?.[0]
    if (skipped !== undefined) {
      meaningful ||= !skipped.startsWith('--') && !skipped.startsWith('/*')
      at += skipped.length
      continue
    }
    const character = text[at]!
    if (character === ';') end(at)
    else if (character.trim() !== '') meaningful = true
    at++
  }
  end(text.length)
  return statements
}
