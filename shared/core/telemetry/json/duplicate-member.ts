/** Finds the member that an object has twice, for the 400 of a signed body. */

/** The most characters of a client's name that a path repeats. */
const nameCharactersMax = 64

/**
 * A name with its colon, a text, or a mark of JSON. Numbers and words need no look. A text that
 * does not end matches as well, so that the time is linear for any input.
 */
const tokenPattern = /("(?:[^"\\]|\\.)*"?)(\s*:)?|[[\]{},]/g

type Open = { path: string; names: Set<string> | null; items: number }

/**
 * The path of the first member whose name its object has already.
 * @param text valid JSON
 * @returns `$.signals.root.su_binary`, or null when no name is repeated
 */
export function findDuplicateMember(text: string): string | null {
  const open: Open[] = []
  let path = '$'
  for (const [token, quoted, colon] of text.matchAll(tokenPattern)) {
    const inner = open.at(-1)
    if (colon !== undefined && inner?.names) {
      const name = JSON.parse(quoted!) as string
      path = `${inner.path}.${name.slice(0, nameCharactersMax)}`
      if (inner.names.has(name)) return path
      inner.names.add(name)
    } else if (token === '{' || token === '[') {
      const at =
        inner !== undefined && inner.names === null ? `${inner.path}[${inner.items}]` : path
      open.push({ path: at, names: token === '{' ? new Set() : null, items: 0 })
    } else if (token === '}' || token === ']') {
      open.pop()
    } else if (token === ',' && inner !== undefined) {
      inner.items++
    }
  }
  return null
}
