/** What remains of an erased id, place by place. */

/** Rows that hold the id. */
export type Mention = {
  /** A store and its table and column, as `postgres.labels.note`; without a column when not counted. */
  place: string
  /** Null when they were not counted: there are too many to read. */
  rows: number | null
}

/** What remains of the id: people and other devices may have named it where text is free. */
export type KeptMentions = {
  /** Events of others whose body has it. Null when there are too many bodies to read. */
  events: number | null
  /** Every other place that has it. */
  others: Mention[]
}
