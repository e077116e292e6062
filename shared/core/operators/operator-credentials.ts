/**
 * The random credentials of operators: session and invitation tokens, recovery codes and ids. Each
 * is made from random bytes that are handed in; of tokens and codes only the SHA-256 is stored.
 */
import { hash } from 'node:crypto'

/** Bytes of randomness of a token. */
export const tokenBytes = 32
/** Bytes of randomness of an id. */
export const operatorIdBytes = 16
/** 80 bits each: too many to try, so that one round of SHA-256 is enough. */
export const recoveryCodeBytes = 10
export const recoveryCodes = 10

export const tokenPattern = /^[A-Za-z0-9_-]{43}$/

/** A session or invitation token: 43 characters of base64url. */
export const toToken = (random: Buffer): string => random.toString('base64url')

/** What is stored of a token. 256 random bits need no slow hash. */
export const hashToken = (token: string): Buffer => hash('sha256', token, 'buffer')

/** `opr_`, `ses_` or `inv_` and 22 characters of base64url. */
export const toOperatorsId = (kind: 'opr' | 'ses' | 'inv', random: Buffer): string =>
  `${kind}_${random.toString('base64url')}`

/** Crockford's base32: without I, L, O and U, which are misread. */
const digits = '0123456789abcdefghjkmnpqrstvwxyz'

/** A recovery code: 16 characters in four groups, `0123-4567-89ab-cdef`. */
export function toRecoveryCode(random: Buffer): string {
  const bits = [...random].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const text = (bits.match(/.{5}/g) ?? []).map((five) => digits[Number.parseInt(five, 2)]).join('')
  return (text.match(/.{4}/g) ?? []).join('-')
}

/** What is stored of a recovery code, however it is typed: case, spaces and hyphens are free. */
export const hashRecoveryCode = (code: string): Buffer =>
  hash('sha256', code.toLowerCase().replaceAll(/[\s-]/g, ''), 'buffer')

/** An address to sign in by: one form for every way to type it. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase()

export const emailCharactersMax = 254
/** The form alone, without what Postgres cannot hold; whether the address exists does not matter. */
export const emailPattern = /^[^\s@\p{Cc}\p{Cs}]+@[^\s@\p{Cc}\p{Cs}]+$/u
