/**
 * Which passwords operators may choose: long enough and not guessable from lists or from the
 * account, as NIST SP 800-63B (5.1.1.2) has it. There are no rules on the kinds of characters.
 */

const passwordCharactersMin = 12
/** Bounds what a sign-in makes us hash. */
export const passwordCharactersMax = 256

/** What of an account must not be the password. */
export type PasswordContext = {
  email: string
  name: string
  /** Whether a lower-case word is in a list of common passwords. */
  isCommon: (word: string) => boolean
}

/** Names of this service and words that stand for one. */
const ownWords = ['console', 'admin', 'administrator', 'deviceintelligence', 'intelligence']

/**
 * What is wrong with a new password.
 * @returns a sentence part such as `must have at least 12 characters`, or null
 */
export function findPasswordFault(password: string, context: PasswordContext): string | null {
  const characters = [...password].length
  if (characters < passwordCharactersMin) {
    return `must have at least ${passwordCharactersMin} characters`
  }
  if (characters > passwordCharactersMax) {
    return `must have at most ${passwordCharactersMax} characters`
  }
  if (!password.isWellFormed()) return 'must not contain a lone surrogate'
  const text = password.normalize('NFKC').toLowerCase()
  if (isCommonForm(text, context.isCommon)) return 'is one of the most common passwords'
  if (new Set(text).size < 5) return 'must have at least five different characters'
  if (isFromAccount(text, context)) return 'must not be made of the email address or the name'
  return null
}

/** The password hashed and compared: one form for every way to type a character. */
export const normalizePassword = (password: string): string => password.normalize('NFKC')

/** The word itself, without what people add to reach a length, and a word said twice. */
function isCommonForm(text: string, isCommon: (word: string) => boolean): boolean {
  const word = toBaseWord(text)
  const forms = [text, word, toHalf(text), toHalf(word)]
  return forms.some((form) => form.length > 3 && (isCommon(form) || ownWords.includes(form)))
}

/** Without leading and trailing digits and signs: `password2024!` is `password`. */
function toBaseWord(text: string): string {
  const letters = [...text]
  const isLetter = (letter: string) => /\p{L}/u.test(letter)
  const first = letters.findIndex(isLetter)
  return first < 0 ? '' : letters.slice(first, letters.findLastIndex(isLetter) + 1).join('')
}

/** The first half of a text that says the same twice, else nothing. */
function toHalf(text: string): string {
  const half = text.slice(0, text.length / 2)
  return half + half === text ? half : ''
}

function isFromAccount(text: string, { email, name }: PasswordContext): boolean {
  const word = toBaseWord(text)
  const [local = '', domain = ''] = email.toLowerCase().split('@')
  const parts = [email.toLowerCase(), local, domain, name.toLowerCase().replaceAll(' ', '')]
  return parts.some((part) => part.length > 3 && (text === part || word === toBaseWord(part)))
}
