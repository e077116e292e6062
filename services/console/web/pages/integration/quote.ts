/** Writes a text as a string literal of a programming language, whatever its characters are. */

/** The literal of a text. */
export type Quote = (text: string) => string

const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Control and invisible characters, which a literal cannot hold or a reader cannot see. Others stay
 * as they are: the source is UTF-8.
 */
const hidden = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]$/u

/**
 * Literals in double quotes with C's escapes.
 * @param special what needs a backslash besides `"` and the backslash itself
 * @param toUnicode the escape of a character by its four hexadecimal digits
 */
export function quoteDouble({
  special = '',
  toUnicode = (hex: string) => `\\u${hex}`,
} = {}): Quote {
  const toEscaped = (character: string) => {
    if (`"\\${special}`.includes(character)) return `\\${character}`
    const code = character.codePointAt(0)!
    // No escape of four digits reaches those above.
    if (!hidden.test(character) || code > 0xffff) return character
    return short[character] ?? toUnicode(code.toString(16).padStart(4, '0'))
  }
  return (text) => `"${Array.from(text, toEscaped).join('')}"`
}

/** Literals in single quotes of PHP and Ruby, which know two escapes alone. */
export const quoteSingle: Quote = (text) => `'${text.replace(/[\\']/g, '\\$&')}'`
