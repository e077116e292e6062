/** Choices that are found by typing. Pure. */

export type FindChoice = {
  value: string
  text: string
  /** Beside the text, such as the code of a name. */
  code?: string
  /** How much choosing it shows; `…` while that is read. */
  count?: number | '…'
}

/** Those whose name, code or value has what was typed. */
export function findChoices(choices: readonly FindChoice[], typed: string): FindChoice[] {
  const wanted = typed.trim().toLowerCase()
  return choices.filter(({ value, text, code = '' }) =>
    [value, text, code].some((one) => one.toLowerCase().includes(wanted)),
  )
}
