/** Names of fields and filters in words: `Device` of `device_id`, `Min score` of `min_score`. */
export function toWords(name: string): string {
  const words = name.replace('_id', '').replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
