/** The known name that is nearest to one that a person or a client wrote. */

import { countChanges } from '#shared/core/base/text-distance.ts'

/** Names that differ by more than this are not called near. */
const changesMax = 2

/** The name without case and separators: `suBinary` and `su_binary` are alike. */
export function toPlain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** Short names are near to everything, so they may differ by less. */
export const toChangesMax = (plain: string): number => (plain.length < 5 ? 1 : changesMax)

/** @param most changes of letters; two turn a bad value into a good one: VERIFIED, UNVERIFIED */
export function findNearest(value: string, values: readonly string[], most = 1): string | null {
  const plain = toPlain(value)
  let nearest: string | null = null
  let least = most + 1
  for (const one of values) {
    const changes = countChanges(plain, toPlain(one), least - 1)
    if (changes >= least) continue
    least = changes
    nearest = one
  }
  return nearest
}
