/** Ids that are taken as they are and are probably not what was meant: no two of them are equal. */

/**
 * What is unusual in an id.
 * @returns what follows the id's path in a warning; null for a usual one
 */
export function findUnusual(id: string): string | null {
  if (id.trim() !== id) return 'begins or ends with white space: without it, it is another id'
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(id)) {
    return 'has invisible characters: without them, it is another id'
  }
  if (id.includes('@') && id !== id.toLowerCase()) {
    return 'has capital letters: in small letters it is another id'
  }
  return null
}
