/**
 * Checks a response: whether it contains another tenant's data, and whether a foreign id is
 * answered like an unknown one.
 */
import type { CallAnswer } from '../../support/http/http-call.ts'

/** The owners of marks, which can be anywhere in a text, and of whole ids. */
export type Ownership = {
  marks: Map<string, string>
  ids: Map<string, string>
}

const idPattern = /(?:alr|dlv|evt)_[A-Za-z0-9_-]+/g

/**
 * Everything in a text that belongs to another tenant.
 * @param request the text of the request; an echo of it in the response is no leak
 */
export function findForeign(
  text: string,
  { owner, ownership, request }: { owner: string; ownership: Ownership; request: string },
): string[] {
  const foreign: string[] = []
  for (const [mark, holder] of ownership.marks) {
    if (holder !== owner && text.includes(mark) && !request.includes(mark)) foreign.push(mark)
  }
  for (const [id] of text.matchAll(idPattern)) {
    const holder = ownership.ids.get(id)
    if (holder !== undefined && holder !== owner && !request.includes(id)) foreign.push(id)
  }
  return foreign
}

/** Headers that differ between any two responses. */
const ownHeaders = new Set(['date', 'x-request-id', 'ratelimit', 'connection', 'keep-alive'])

/** A response without its own id and headers, for comparison. */
export function toComparable({ status, headers, text }: CallAnswer, id: string): string {
  const requestId = String(headers['x-request-id'])
  const spellings = [id, JSON.stringify(id).slice(1, -1)]
  let body = text.replaceAll(requestId, '<request>')
  for (const spelling of spellings) body = body.replaceAll(spelling, '<id>')
  const named = Object.entries(headers)
    .filter(([name]) => !ownHeaders.has(name))
    .map(([name, value]) => [name, String(value).replace(/'nonce-[0-9a-f]+'/g, '<nonce>')] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([status, named, Object.keys(headers).sort(), body])
}

/** An unknown id of the same shape and length. */
export function toUnknown(id: string, salt: number): string {
  const tail = `${salt.toString(36)}zq`.padStart(10, '0').slice(-10)
  if (id.length <= 10) return tail.slice(-id.length)
  // Keeps the beginning, because ids have prefixes.
  return `${id.slice(0, 4)}${'0'.repeat(Math.max(0, id.length - 14))}${tail}`.slice(0, id.length)
}
