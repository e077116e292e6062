/**
 * The keys that verify verdicts: given, or fetched and kept for some minutes. A key that is not
 * among those that are kept is looked for once more, so a rotation needs nothing of the verifier.
 */
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

const byAddress = new Map<string, FindVerdictKeys>()
const byFunction = new WeakMap<() => Promise<VerdictKeySet>, FindVerdictKeys>()

/** @throws TypeError when it is none of these */
export function toKeyFinder(source: unknown): FindVerdictKeys {
  if (typeof source === 'function') {
    const fetchKeys = source as () => Promise<VerdictKeySet>
    const known = byFunction.get(fetchKeys) ?? createKeptKeys(fetchKeys)
    byFunction.set(fetchKeys, known)
    return known
  }
  // By what it is, not by its class: a test runner may have a URL of its own.
  const address = (source as { href?: unknown } | null | undefined)?.href ?? source
  if (typeof address === 'string') return findByAddress(address)
  if (isKeySet(source)) return async (kid) => selectKeys(source, kid)
  const what = isPromise(source) ? 'a promise: await it' : describe(source)
  return fail('keys', `must be a key set, an address or a function, not ${what}`)
}

function findByAddress(address: string): FindVerdictKeys {
  const known = byAddress.get(address)
  if (known !== undefined) return known
  if (!/^https?:\/\/[^/]/i.test(address)) {
    fail(
      'keys',
      'must begin with https:// or http://, such as https://di.example.com/v1/di/verdict-keys',
    )
  }
  if (byAddress.size >= addressesMax) byAddress.delete([...byAddress.keys()][0]!)
  const made = createKeptKeys(() => fetchKeySet(address))
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

function createKeptKeys(fetchKeys: () => Promise<VerdictKeySet>): FindVerdictKeys {
  let kept: { set: VerdictKeySet; atMs: number } | null = null
  let triedAtMs = Number.NEGATIVE_INFINITY
  let fetching: Promise<VerdictKeySet> | null = null

  const fetchOnce = (): Promise<VerdictKeySet> => {
    triedAtMs = Date.now()
    fetching ??= Promise.resolve()
      .then(fetchKeys)
      .then((set) => {
        if (!isKeySet(set)) throw new Error('the answer is no key set')
        kept = { set, atMs: Date.now() }
        return set
      })
      .finally(() => {
        fetching = null
      })
    return fetching
  }
  /** How long ago; infinite where the clock was put back. */
  const since = (atMs: number) => {
    const ms = Date.now() - atMs
    return ms >= 0 ? ms : Number.POSITIVE_INFINITY
  }

  return async (kid) => {
    const known = kept === null ? [] : selectKeys(kept.set, kid)
    const isFresh = kept !== null && since(kept.atMs) < verdictKeysKeptMs
    if (isFresh && (known.length > 0 || since(triedAtMs) < verdictKeysRefetchMs)) return known
    try {
      return selectKeys(await fetchOnce(), kid)
    } catch (error) {
      // A verdict needs no call to the service: it may be away for a while.
      const isUsable = kept !== null && since(kept.atMs) < verdictKeysStaleMsMax
      if (isUsable && known.length > 0) return known
      throw new VerdictKeysError(error)
    }
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
