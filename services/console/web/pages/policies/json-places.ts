/** Where the value of a JSON path stands in a text: `$.floors[0].score` to characters. Pure. */

type Place = { from: number; to: number }

/**
 * The place of the deepest part of a path that is there, so that a missing field is shown at its
 * object.
 * @param text JSON; of another text the place is its beginning
 */
export function findPlace(text: string, path: string): Place {
  const keys = [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]/g)].map(
    ([, name, index]) => name ?? index!,
  )
  let place: Place = { from: 0, to: Math.min(1, text.length) }
  let at = skipSpace(text, 0)
  for (const key of keys) {
    const found = findMember(text, at, key)
    if (found === null) return place
    place = found.place
    at = found.value
  }
  return place
}

const skipSpace = (text: string, at: number): number => {
  let next = at
  while (/\s/.test(text[next] ?? '')) next += 1
  return next
}

function findMember(
  text: string,
  start: number,
  key: string,
): { place: Place; value: number } | null {
  const isList = text[start] === '['
  if (!isList && text[start] !== '{') return null
  let at = skipSpace(text, start + 1)
  for (let index = 0; at < text.length && text[at] !== '}' && text[at] !== ']'; index += 1) {
    let name = String(index)
    const from = at
    if (!isList) {
      const end = skipValue(text, at)
      name = parseName(text.slice(at, end))
      at = skipSpace(text, skipSpace(text, end) + 1)
    }
    const end = skipValue(text, at)
    if (name === key) return { place: { from, to: end }, value: at }
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return null
}

function parseName(text: string): string {
  try {
    return String(JSON.parse(text))
  } catch {
    return text
  }
}

/** The end of the value that starts here. */
function skipValue(text: string, start: number): number {
  let depth = 0
  let at = start
  while (at < text.length) {
    const character = text[at]!
    if (character === '"') at = skipString(text, at)
    else if ('{['.includes(character)) {
      depth += 1
      at += 1
    } else if ('}]'.includes(character)) {
      if (depth === 0) return at
      depth -= 1
      at += 1
    } else if (depth === 0 && (character === ',' || character === ':')) return at
    else if (depth === 0 && /\s/.test(character) && at > start) return at
    else at += 1
    if (depth === 0 && '"}]'.includes(text[at - 1] ?? '')) return at
  }
  return at
}

function skipString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
}
