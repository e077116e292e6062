/**
 * Finds what a caller of an address that does not exist meant, from the routes alone: the answer is
 * the same for every caller and says nothing of what is stored.
 */
import { countChanges } from '#shared/core/base/text-distance.ts'

/** A route: its methods and its path, with `:name` for a parameter and `*` for the rest. */
export type KnownRoute = { methods: readonly string[]; url: string }

/** Of a path, what is looked at: the longest route has six parts. */
const partsMax = 8
const partCharactersMax = 32

/** Parts that every route begins with: of them alone no route is meant. */
const prefixes = ['v1', 'di', 'admin']

const toParts = (path: string): string[] =>
  path
    .split('/', partsMax + 1)
    .filter((part) => part !== '')
    .map((part) => part.slice(0, partCharactersMax).toLowerCase())

const isParameter = (part: string): boolean => part === '*' || part.startsWith(':')

/** Two letters may differ; of a short word none, since short words are near to everything. */
const isNear = (given: string, literal: string): boolean =>
  given === literal || (literal.length > 3 && countChanges(given, literal, 2) <= 2)

/**
 * The route that has the most words of a path, in their order: each word of the route must be in
 * it, but for the prefix. Of several it is the one of the same method and length.
 * @returns such as `GET /v1/di/alerts/{alert_id}`; null when none is near
 */
export function findNearestRoute(
  { method, path }: { method: string; path: string },
  routes: readonly KnownRoute[],
): string | null {
  const given = toParts(path)
  let nearest: KnownRoute | null = null
  let best = 0
  for (const route of routes) {
    const score = toScore(given, toParts(route.url)) + (route.methods.includes(method) ? 1 : 0)
    if (score <= Math.max(best, 1)) continue
    best = score
    nearest = route
  }
  if (nearest === null) return null
  const shown = nearest.methods.includes(method) ? method : nearest.methods[0]
  return `${shown} ${toTemplate(nearest.url)}`
}

/** 0 when the route lacks something; else higher, the more words it has and the nearer its length. */
function toScore(given: readonly string[], route: readonly string[]): number {
  let at = 0
  let words = 0
  for (const part of route) {
    if (isParameter(part)) continue
    const found = given.findIndex((one, index) => index >= at && isNear(one, part))
    if (found >= 0) {
      at = found + 1
      if (!prefixes.includes(part)) words++
    } else if (!prefixes.includes(part)) return 0
  }
  return words === 0 ? 0 : 20 * words - 2 * Math.abs(given.length - route.length)
}

/** The path as documents write it: `:alert_id` is `{alert_id}`. */
const toTemplate = (url: string): string => url.replace(/:(\w+)/g, '{$1}')
