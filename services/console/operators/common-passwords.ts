/**
 * The list of common passwords: 49,000 of those that leaks have most often, of
 * `@zxcvbn-ts/language-common`. Loaded when a password is first chosen: it takes some megabytes.
 */

let loading: Promise<ReadonlySet<string>> | undefined

/** @returns whether a lower-case word is in the list */
export async function loadCommonPasswords(): Promise<(word: string) => boolean> {
  loading ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set(dictionary['passwords-common'].map((word) => word.toLowerCase())),
  )
  const words = await loading
  return (word) => words.has(word)
}
