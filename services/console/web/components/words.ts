/** Numbers and names in words. */

/** A number with its word: `1 alert`, `1,024 alerts`. */
export const counted = (n: number, word: string): string =>
  `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`

/** The name of a field or a filter: `Device` of `device_id`, `Min score` of `min_score`. */
export function toWords(name: string): string {
  if (name === 'asn') return 'ASN'
  const words = name.replace('_id', '').replaceAll('_', ' ').replace('sdk', 'SDK')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
