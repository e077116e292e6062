/** Figures of a suggestion in words. */

export const toCount = (value: number): string => value.toLocaleString('en')
