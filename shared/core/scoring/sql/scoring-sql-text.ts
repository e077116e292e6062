/**
 * Values as ClickHouse literals, equal in the engine and here. Operators write the texts of a
 * policy, and none of them may become part of a query's grammar.
 */

const plain = /^[\x20-\x26\x28-\x5b\x5d-\x7e]*$/

/** A text literal: printable ASCII without quotes and backslashes as it is, the rest as hex. */
export function quoteText(text: string): string {
  return plain.test(text) ? `'${text}'` : `unhex('${Buffer.from(text, 'utf8').toString('hex')}')`
}

/** An array literal of texts. */
export function quoteTexts(texts: readonly string[]): string {
  return `[${texts.map(quoteText).join(', ')}]`
}

/** The literal of a finite number: integers as digits, others as the bits of the double. */
export function quoteNumber(value: number): string {
  if (Number.isSafeInteger(value)) return `toInt64(${value})`
  const bits = Buffer.alloc(8)
  bits.writeDoubleLE(value)
  return `reinterpretAsFloat64(unhex('${bits.toString('hex')}'))`
}
