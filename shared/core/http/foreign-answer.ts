/**
 * Answers that are not the console's: something between it and its client, such as a firewall or a
 * sign-in proxy, answered with a page of its own. Pages and the command line say so.
 */

/** The media types of the admin API. */
const ownTypes = /^(?:application\/(?:json|x-ndjson|[a-z]+\+json)|text\/(?:csv|event-stream))$/
/** Few, because the patterns below can take time that grows with the square. */
const charactersRead = 4_000
const wordsCharactersMax = 160

/**
 * Whether an answer can be the admin API's.
 * @param contentType the header, with its parameters
 */
export function isOwnAnswer(status: number, contentType: string | null): boolean {
  if (status === 204 || status === 304) return true
  return ownTypes.test(toMediaType(contentType))
}

/** One sentence with the status, the address after redirects, the type and the first words. */
export function describeForeignAnswer(answer: {
  status: number
  contentType: string | null
  /** Where the answer came from in the end, when that is another address than was called. */
  redirectedTo?: string | undefined
  text: string
}): string {
  const { status, contentType, redirectedTo, text } = answer
  const type = toMediaType(contentType)
  const from = redirectedTo === undefined ? '' : ` from ${redirectedTo}`
  const words = toFirstWords(text, type)
  const said = words === '' ? 'it was empty' : `it says “${words}”`
  return (
    'This answer did not come from the console, but from something in between, such as a ' +
    `firewall or a sign-in proxy: HTTP ${status}${from}, ${type || 'without a type'}; ${said}.`
  )
}

const toMediaType = (contentType: string | null): string =>
  (contentType ?? '').split(';')[0]!.trim().toLowerCase()

/** The visible text of a page begins with its title. */
function toFirstWords(text: string, type: string): string {
  const begin = text.slice(0, charactersRead)
  const visible = type.includes('html')
    ? begin
        .replace(/<!--.*?(?:-->|$)/gs, ' ')
        .replace(/<(script|style)\b.*?(?:<\/\1\s*>|$)/gis, ' ')
        .replace(/<[^>]*(?:>|$)/g, ' ')
    : begin
  const words = visible.replace(/\s+/g, ' ').trim()
  return words.length > wordsCharactersMax ? `${words.slice(0, wordsCharactersMax)}…` : words
}
