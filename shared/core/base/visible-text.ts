/** Texts that clients choose, such as ids: what they may not have, and how they can be shown. */

/** C0 and C1 control characters and DEL, which no id may have. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
export const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/

/**
 * Escapes control characters and invisible ones, such as marks that turn the direction of what
 * follows: `\u{202e}`.
 */
export function toVisible(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
}
