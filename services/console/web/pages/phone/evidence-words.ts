/** What a comparison of an install with a phone says, in words. */

type Compared = { field: string; level: number }

/** What was found, by field and level; the first is for what differs. */
const found: Readonly<Record<string, readonly string[]>> = {
  traits: [
    'another hardware',
    'the same hardware',
    'the same hardware, system and settings',
    'the same hardware, system, settings and network',
  ],
  user: ['other users', 'a user in common'],
  boot: ['another start of the system', 'the same start of the system'],
  model: ['another model'],
  omitted: ['left out, though the phone has told it'],
  'in use': ['the phone was in use after this system had started'],
}

const names: Readonly<Record<string, string>> = {
  traits: 'Hardware and settings',
  user: 'Users',
  boot: 'Start of the system',
  model: 'Model',
  omitted: 'Hardware',
  'in use': 'Use at one time',
}

/** The name of what was compared: `Identifier keychain_id`. */
export const toFieldName = ({ field }: Pick<Compared, 'field'>): string =>
  (Object.hasOwn(names, field) ? names[field] : undefined) ??
  field.replace(/^identifier /, 'Identifier ')

/** What was found: `equal`, or in words of the field. A later release may have other levels. */
export const toFound = ({ field, level }: Compared): string =>
  (Object.hasOwn(found, field) ? found[field]?.[level] : undefined) ??
  (level === 0 ? 'differs' : 'equal')

/** A weight as a factor, which multiplies the odds: `480 times as likely`. */
export function toFactor(weight: number): string {
  if (Math.abs(weight) < 0.05) return 'as likely'
  const factor = Math.exp(Math.abs(weight))
  const text = factor.toLocaleString('en', { maximumSignificantDigits: factor < 10 ? 2 : 3 })
  return weight > 0 ? `${text} times as likely` : `1/${text} as likely`
}

/** A weight with its sign: `+13.8`. */
export const toSigned = (weight: number): string =>
  `${weight > 0 ? '+' : weight < 0 ? '−' : ''}${Math.abs(weight).toFixed(1)}`
