/** A number with its word: `1 alert`, `1,024 alerts`. */
export const counted = (n: number, word: string): string =>
  `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`
