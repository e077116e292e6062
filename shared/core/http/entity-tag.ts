/**
 * Entity tags (RFC 9110): a tag names the content of an answer. Tags are weak, because the same
 * content is sent compressed or not.
 */
import { hash } from 'node:crypto'

/** 128 bits: two contents with the same tag cannot be found. */
const tagCharacters = 22

/** @param content the body before compression @returns `W/"..."` */
export const toEntityTag = (content: string | Buffer): string =>
  `W/"${hash('sha256', content, 'base64url').slice(0, tagCharacters)}"`

/**
 * Whether a client has the content already.
 * @param ifNoneMatch the header: tags with commas, weak or strong, or `*` for any content
 */
export function hasEntityTag(ifNoneMatch: string, tag: string): boolean {
  const toOpaque = (one: string) => one.trim().replace(/^W\//, '')
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((one) => toOpaque(one) === toOpaque(tag))
}
