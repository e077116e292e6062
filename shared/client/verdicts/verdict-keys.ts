/**
 * The keys that verify verdicts: given, or fetched and kept. After some minutes they are fetched
 * anew, beside the verdicts that need them; while that fails or hangs, they count for an hour. A
 * key that is not among them is looked for once more, so a rotation needs nothing of the verifier.
 */

import { createKept, type Kept } from '#shared/core/base/kept-value.ts'
import {
  verdictKeysCharactersMax,
  verdictKeysKeptMs,
  verdictKeysMax,
  verdictKeysRefetchMs,
  verdictKeysStaleMsMax,
  verdictKeysTimeoutMs,
} from '#shared/core/base/limits/client.ts'
import { describe, fail, isPromise } from '../check-arguments.ts'
import { VerdictKeysError } from '../errors.ts'

/** One key of a set (RFC 7517); further members are ignored. */
export type VerdictKey = {
  kty?: string
  crv?: string
  x?: string
  y?: string
  kid?: string
  use?: string
  alg?: string
}

export type VerdictKeySet = { keys: readonly VerdictKey[] }

/**
 * A key set; the address of `GET {base_url}/v1/di/verdict-keys`, a text or a `URL`; or a function that fetches a key
 * set. What is fetched is kept for five minutes, by the address or the function.
 */
export type VerdictKeySource =
  | VerdictKeySet
  | string
  | { readonly href: string }
  | (() => Promise<VerdictKeySet>)

/** Finds the keys of an id; an empty list when there is none. */
export type FindVerdictKeys = (kid: string) => Promise<readonly VerdictKey[]>

/** Addresses whose keys are kept at once. A server has one; the oldest goes. */
const addressesMax = 16

const byAddress = new Map<string, KeptKeys>()
const byFunction = new WeakMap<() => Promise<VerdictKeySet>, KeptKeys>()

/** @throws TypeError when it is none of these */
export function toKeyFinder(source: unknown): FindVerdictKeys {
  const kept = toKept(source)
  return kept === null ? async (kid) => selectKeys(source as VerdictKeySet, kid) : toFinder(kept)
}

/**
 * @returns null for a key set, of which nothing is fetched
 * @throws TypeError when it is no source of keys
 */
function toKept(source: unknown): KeptKeys | null {
  if (typeof source === 'function') {
    const fetchKeys = source as () => Promise<VerdictKeySet>
    const known = byFunction.get(fetchKeys) ?? keepKeys(fetchKeys)
    byFunction.set(fetchKeys, known)
    return known
  }
  // By what it is, not by its class: a test runner may have a URL of its own.
  const address = (source as { href?: unknown } | null | undefined)?.href ?? source
  if (typeof address === 'string') return keepAddress(address)
  if (isKeySet(source)) return null
  const what = isPromise(source) ? 'a promise: await it' : describe(source)
  return fail('keys', `must be a key set, an address or a function, not ${what}`)
}

function keepAddress(address: string): KeptKeys {
  const known = byAddress.get(address)
  if (known !== undefined) return known
  if (!/^https?:\/\/[^/]/i.test(address)) {
    fail(
      'keys',
      'must begin with https:// or http://, such as https://di.example.com/v1/di/verdict-keys',
    )
  }
  if (byAddress.size >= addressesMax) byAddress.delete([...byAddress.keys()][0]!)
  const made = keepKeys(() => fetchKeySet(address))
  byAddress.set(address, made)
  return made
}

async function fetchKeySet(address: string): Promise<VerdictKeySet> {
  const response = await fetch(address, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(verdictKeysTimeoutMs),
  })
  if (!response.ok) throw new Error(`the address answers ${response.status}`)
  const text = await response.text()
  if (text.length > verdictKeysCharactersMax) throw new Error('the answer is too long')
  return JSON.parse(text) as VerdictKeySet
}

/** Keys that are kept, by their source. */
type KeptKeys = Kept<VerdictKeySet>

function keepKeys(fetchKeys: () => Promise<VerdictKeySet>): KeptKeys {
  return createKept({
    read: async () => {
      const set = await inTime(fetchKeys())
      if (!isKeySet(set)) throw new Error('the answer is no key set')
      return set
    },
    nowMs: Date.now,
    rules: {
      freshMs: verdictKeysKeptMs,
      staleMsMax: verdictKeysStaleMsMax,
      retryMs: verdictKeysRefetchMs,
      // A verdict needs no call to the service, which may be away for a while.
      waitMs: 0,
    },
  })
}

/** A function of the caller may never answer. */
function inTime<T>(fetching: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer in ${verdictKeysTimeoutMs / 1_000} s`)),
      verdictKeysTimeoutMs,
    )
  })
  return Promise.race([fetching, late]).finally(() => clearTimeout(timer))
}

const toFinder =
  (kept: KeptKeys): FindVerdictKeys =>
  async (kid) => {
    try {
      const known = selectKeys(await kept.get(), kid)
      return known.length > 0 ? known : selectKeys(await kept.look(), kid)
    } catch (error) {
      throw new VerdictKeysError(error)
    }
  }

export type VerdictKeysStatus = {
  /** When the keys that count were fetched, in ms since 1970; null where there are none. */
  fetchedAtMs: number | null
  /** Why the last fetch failed; null when it did not, or when none was needed. */
  error: VerdictKeysError | null
}

/**
 * What is kept of a source, for a health check: while the service is away, its keys count for an
 * hour, and `error` says why they are not fetched.
 * @throws TypeError when it is no source of keys
 */
export function verdictKeysStatus(source: VerdictKeySource): VerdictKeysStatus {
  const kept = toKept(source)
  if (kept === null) return { fetchedAtMs: null, error: null }
  const { last, failure } = kept.state()
  return {
    fetchedAtMs: last?.atMs ?? null,
    error: failure === null ? null : new VerdictKeysError(failure.error),
  }
}

function isKeySet(value: unknown): value is VerdictKeySet {
  const keys = (value as { keys?: unknown } | null | undefined)?.keys
  return Array.isArray(keys) && keys.every((key) => typeof key === 'object' && key !== null)
}

/** The keys of an id that can be those of the service. */
function selectKeys({ keys }: VerdictKeySet, kid: string): readonly VerdictKey[] {
  return keys
    .slice(0, verdictKeysMax)
    .filter(
      (key) =>
        key.kid === kid &&
        key.kty === 'EC' &&
        key.crv === 'P-256' &&
        (key.alg === undefined || key.alg === 'ES256') &&
        (key.use === undefined || key.use === 'sig'),
    )
}
