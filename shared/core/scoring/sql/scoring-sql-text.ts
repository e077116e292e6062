/**
 * Values as ClickHouse literals that mean the same to the engine as they do here, whatever is in
 * them: a policy's texts are an operator's, and none of them may become part of a query's grammar.
 */

const plain = /^[\x20-\x26\x28-\x5b\x5d-\x7e]*$/

/**
 * A text literal: printable ASCII without quotes and backslashes as it is, the rest by its bytes.
 */
export function quoteText(text: string): string {
  return plain.test(text) ? `'${text}'` : `unhex('${Buffer.from(text, 'utf8').toString('hex')}')`
}

export function quoteTexts(texts: readonly string[]): string {
  return `[${texts.map(quoteText).join(', ')}]`
}

/** A finite number: whole ones by their digits, others by the bits that they have here. */
export function quoteNumber(value: number): string {
  if (Number.isSafeInteger(value)) return `toInt64(${value})`
  const bits = Buffer.alloc(8)
  bits.writeDoubleLE(value)
  return `reinterpretAsFloat64(unhex('${bits.toString('hex')}'))`
}
