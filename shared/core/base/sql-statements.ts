/**
 * Cuts a SQL file into its statements, for servers that take one statement at a time. Semicolons in
 * strings, quoted names and comments are left alone.
 */

/** What opens a stretch in which a semicolon means nothing, and how that stretch ends. */
const opaque = /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\//y

/**
 * @param text a file with statements that end in semicolons; the last may go without
 * @returns the statements with their comments, without semicolons; none that are comments only
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
