/** One line of a chart: a value for each of its times, null where there is none. */
export type Series = {
  label: string
  values: (number | null)[]
  color?: 'accent' | 'warn' | 'bad'
  /** Points for values that have nothing between them, such as one of each session. */
  look?: 'line' | 'points'
}

/** A level that is drawn as a dashed line, such as a threshold. */
export type Mark = { label: string; at: number; color: 'warn' | 'bad' }
