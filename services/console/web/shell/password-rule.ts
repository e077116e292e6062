/** What a password needs, as the forms say it; the server also refuses common ones. */
export const passwordCharactersMin = 12

export const passwordHint = `At least ${passwordCharactersMin} characters. Several words are easy to remember and hard to guess.`
