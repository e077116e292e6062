/** Texts that clients choose, such as ids, as they can be shown. */

/**
 * Escapes control characters and invisible ones, such as marks that turn the direction of what
 * follows: `\u{202e}`.
 */
export function toVisible(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
}
