/**
 * How an answer is judged: whether anything in it is another tenant's, and whether a foreign id is
 * answered exactly as one that nobody has.
 */
import type { CallAnswer } from '../../support/http/http-call.ts'

/** What is whose: marks are texts that appear anywhere, ids are whole. */
export type Ownership = {
  marks: Map<string, string>
  ids: Map<string, string>
}

const idPattern = /(?:alr|dlv|evt)_[A-Za-z0-9_-]+/g

/**
 * Everything in a text that is another tenant's.
 * @param asked what the question itself had: said back, it is no secret
 */
export function findForeign(
  text: string,
  { owner, ownership, asked }: { owner: string; ownership: Ownership; asked: string },
): string[] {
  const foreign: string[] = []
  for (const [mark, holder] of ownership.marks) {
    if (holder !== owner && text.includes(mark) && !asked.includes(mark)) foreign.push(mark)
  }
  for (const [id] of text.matchAll(idPattern)) {
    const holder = ownership.ids.get(id)
    if (holder !== undefined && holder !== owner && !asked.includes(id)) foreign.push(id)
  }
  return foreign
}

/** Headers that differ between any two answers. */
const ownHeaders = new Set(['date', 'x-request-id', 'ratelimit', 'connection', 'keep-alive'])

/**
 * An answer as two that must not be told apart are compared, with the id that was asked for out.
 */
export function toComparable({ status, headers, text }: CallAnswer, id: string): string {
  const requestId = String(headers['x-request-id'])
  const spellings = [id, JSON.stringify(id).slice(1, -1)]
  let body = text.replaceAll(requestId, '<request>')
  for (const spelling of spellings) body = body.replaceAll(spelling, '<id>')
  const named = Object.entries(headers)
    .filter(([name]) => !ownHeaders.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([status, named, Object.keys(headers).sort(), body])
}

/** An id of the same shape and length that nobody has. */
export function toUnknown(id: string, salt: number): string {
  const tail = `${salt.toString(36)}zq`.padStart(10, '0').slice(-10)
  if (id.length <= 10) return tail.slice(-id.length)
  // The beginning stays what it is for what must have a prefix.
  return `${id.slice(0, 4)}${'0'.repeat(Math.max(0, id.length - 14))}${tail}`.slice(0, id.length)
}
