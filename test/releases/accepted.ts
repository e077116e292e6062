/** Differences from the recorded release that a person has found harmless, each with the reason. */
import accepted from './recorded/accepted.json' with { type: 'json' }

const reasons: Readonly<Record<string, string>> = accepted

export const exceptAccepted = (differences: readonly string[]): string[] =>
  differences.filter((difference) => reasons[difference] === undefined)
